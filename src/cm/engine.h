#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cm/connection.h"
#include "cm/types.h"

namespace ringbolt::cm {

/// All connections of one process: IB CM over RoCE as the Linux kernel speaks it (docs/rdma-cm.md,
/// docs/formats/ib-cm.md). Functions that can fail return 0 or an errno: EINVAL when the state does not allow it. After
/// any call, take what is to be sent and what is to be told. Not thread-safe.
///
/// Split by concern: engine.cpp (what the user does), engine_receive.cpp and engine_requests.cpp (what comes in),
/// engine_timers.cpp (what time does). Its one user is rdmacm's connection manager, which calls it under its own
/// lock. A call that throws std::bad_alloc has changed nothing that the peer could see; datagrams and standings that
/// there is no memory for are left out.
class Engine {
 public:
  struct Seed {
    // Below 2^10. So a datagram's id tells which process of the host it is for.
    uint32_t slot = 0;    ///< goes into bits 22 to 31 of every id
    uint32_t random = 0;  ///< where ids begin, and the upper half of transaction ids
  };
  /// `host` is not owned, and outlives it.
  Engine(const Seed& seed, const Host& host);

  // Listening.
  /// One of the same cookie is replaced. Two of the same address and service are the caller's mistake: who is asked
  /// is the first.
  void listen(const Listener& listener);
  /// Requests that nobody has fetched stay, and are for the caller to destroy.
  void unlisten(uint64_t cookie);
  /// The user has fetched the request: room in the backlog.
  void note_fetched(Handle request);

  // The active side. Ids, transaction and timeouts of the messages are filled in here.
  /// Returns at once; what follows are `response`, `rejected` or `unreachable`. Throws std::bad_alloc.
  Handle connect(uint64_t now_ns, const Path& path, wire::CmReq request);
  /// After a response event: the queue pair is ready; tells the peer.
  int ready(uint64_t now_ns, Handle handle);

  // The passive side.
  /// After a `request` event; `established` follows, or the end.
  int accept(uint64_t now_ns, Handle handle, wire::CmRep reply);
  /// Data came: as good as the peer's "ready to use".
  int note_data(uint64_t now_ns, Handle handle);

  // Both.
  /// `reason`: InfiniBand specification, table 107; data beyond the REJ's room is cut. No event follows; the
  /// handle is idle, and still to be destroyed.
  int reject(uint64_t now_ns, Handle handle, uint16_t reason, std::span<const std::byte> private_data);
  /// Between accept() and the peer's "ready to use" it waits for the latter: until then the peer takes no DREQ.
  int disconnect(uint64_t now_ns, Handle handle);
  /// No further events for the handle; the peer learns what it must. Of an unknown handle nothing happens. It stays
  /// in here until its timewait is over, and must not be used any more.
  void destroy(uint64_t now_ns, Handle handle);

  // Datagrams: who serves this id.
  Handle look_up(uint64_t now_ns, const Path& path, wire::CmSidrReq question);
  /// After a `lookup` event. The answer is kept for a while and repeated to who asks again.
  int answer(uint64_t now_ns, Handle handle, wire::CmSidrRep reply);

  /// Any bytes are safe; what is none of CM's is dropped.
  void receive(uint64_t now_ns, const Arrival& arrival);
  /// The process at a slot of this host ended: what a kernel would have sent for it is taken as received.
  void on_peer_gone(uint64_t now_ns, uint32_t slot);
  /// The process at the other end of one connection ended, on whatever host. The same.
  void on_peer_lost(uint64_t now_ns, Handle handle);
  /// What is due by now_ns; may be called at any time.
  void on_timer(uint64_t now_ns);
  /// UINT64_MAX: nothing will happen by time alone.
  uint64_t next_deadline_ns() const { return timers_.empty() ? UINT64_MAX : timers_.begin()->first; }

  std::vector<Outgoing> take_outgoing() { return std::exchange(outgoing_, {}); }
  /// In the order in which they came about.
  std::vector<Event> take_events() { return std::exchange(events_, {}); }

  /// Which connections have begun to stand, and which have ended, since the last call.
  std::vector<Standing> take_standings() { return std::exchange(standings_, {}); }

  /// `idle` of a handle that is not known (any more).
  State state_of(Handle handle) const;
  /// How many wait for a peer to agree to their end.
  size_t disconnecting() const;
  size_t size() const { return connections_.size(); }

 private:
  using RemoteKey = std::pair<uint64_t, uint32_t>;  // the peer's GUID, and its id or queue pair number

  // engine.cpp
  Connection& create(const Path& path);
  Connection* find(Handle handle);
  void erase(Connection& connection);
  void enter_remote(Connection& connection);
  void leave_remote(Connection& connection);
  void begin_to_stand(Connection& connection);
  void tell(const Connection& connection, Event::Kind kind, int status, const wire::CmMessage& message = {});
  void release_backlog(Connection& connection);
  template <class Message>
  // Also keeps it as what is repeated.
  void send(Connection& connection, const Message& message);
  void send_once(const Connection& connection, const wire::CmMessage& message);
  void resend(const Connection& connection);
  void become_established(uint64_t now_ns, Connection& connection);
  void send_disconnect(uint64_t now_ns, Connection& connection, bool wants_answer);
  void send_agreement(uint64_t now_ns, Connection& connection);
  void send_reject(const Connection& connection, wire::CmAnswered answered, uint16_t reason,
                   std::span<const std::byte> private_data);

  // engine_receive.cpp, engine_requests.cpp
  void on(uint64_t now_ns, const Arrival& arrival, uint64_t tid, const wire::CmReq& request);
  void on(uint64_t now_ns, const Arrival& arrival, uint64_t tid, const wire::CmRep& reply);
  void on(uint64_t now_ns, const Arrival& arrival, uint64_t tid, const wire::CmRtu& message);
  void on(uint64_t now_ns, const Arrival& arrival, uint64_t tid, const wire::CmRej& message);
  void on(uint64_t now_ns, const Arrival& arrival, uint64_t tid, const wire::CmMra& message);
  void on(uint64_t now_ns, const Arrival& arrival, uint64_t tid, const wire::CmDreq& message);
  void on(uint64_t now_ns, const Arrival& arrival, uint64_t tid, const wire::CmDrep& message);
  void on(uint64_t now_ns, const Arrival& arrival, uint64_t tid, const wire::CmSidrReq& question);
  void on(uint64_t now_ns, const Arrival& arrival, uint64_t tid, const wire::CmSidrRep& reply);
  Connection* find(Handle local_id, uint32_t remote_id);
  Connection* find_rejected(const wire::CmRej& message);
  bool replace_stale(uint64_t now_ns, uint64_t guid, uint32_t qpn, Handle except);
  struct Verdict {
    Listener* listener = nullptr;
    uint16_t reason = 0;  ///< why not
  };
  Verdict judge(const Arrival& arrival, uint64_t service_id, std::span<const std::byte> private_data);
  void answer_request(const Arrival& arrival, uint64_t tid, const wire::CmMessage& message);
  void refuse(const Arrival& arrival, uint64_t tid, uint32_t remote_id, wire::CmAnswered answered, uint16_t reason,
              std::span<const uint8_t> info, Handle local_id = 0);
  void end_by_reject(uint64_t now_ns, Connection& connection, uint16_t reason, const wire::CmRej& message);

  // engine_timers.cpp
  void set_deadline(Connection& connection, uint64_t deadline_ns);
  void start_tries(uint64_t now_ns, Connection& connection, uint64_t wait_ns);
  static uint64_t next_pause_ns(Connection& connection);
  void stop_tries(Connection& connection) { set_deadline(connection, UINT64_MAX); }
  void enter_timewait(uint64_t now_ns, Connection& connection);
  void become_idle(Connection& connection);
  void give_up(uint64_t now_ns, Connection& connection);
  void forget_peer(uint64_t now_ns, Connection& connection);

  const Seed seed_;
  const Host& host_;
  uint32_t next_id_;
  std::unordered_map<Handle, Connection> connections_;
  std::map<RemoteKey, Handle> by_remote_id_;
  std::map<RemoteKey, Handle> by_remote_qpn_;
  // Each connection at most once, under its own deadline_ns.
  std::set<std::pair<uint64_t, Handle>> timers_;
  std::vector<Listener> listeners_;
  std::vector<Outgoing> outgoing_;
  std::vector<Event> events_;
  std::vector<Standing> standings_;
};

}  // namespace ringbolt::cm
