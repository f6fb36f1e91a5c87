#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "rsocket/blocking_socket.h"
#include "rsocket/cm_link.h"
#include "rsocket/connection.h"
#include "rsocket/directions.h"
#include "rsocket/keepalive.h"
#include "rsocket/mappings.h"
#include "rsocket/opening_steps.h"
#include "rsocket/options.h"
#include "rsocket/request_queue.h"
#include "rsocket/stream_state.h"

namespace ringbolt::rsocket {

/// A stream socket: a connection manager's id, and once it is connected, the data part. It carries out what its parts
/// decide, each of which can be tried without a connection: how far it has come (StreamState, OpeningSteps), which
/// directions are open (Directions), who waits for accept() (RequestQueue), when a silent peer is asked (Keepalive).
/// A call that waits sleeps on the completion channel and the event channel. Thread-safe: one thread may send while
/// another receives.
class Stream final : public BlockingSocket {
 public:
  static base::Result<std::shared_ptr<Socket>> create(int family);
  ~Stream() override;

  int descriptor() const override { return link_.fd(); }
  Status bind(const Address& address) override;
  Status connect(const Address& address) override;
  Status listen(int backlog) override;
  base::Result<std::shared_ptr<Socket>> accept() override;
  Status shut_down(int how) override;
  void close() override;
  base::Result<size_t> send(IoCursor from, int flags, const Address* to) override;
  base::Result<size_t> receive(IoCursor to, int flags, Address* from) override RINGBOLT_EXCLUDES(receiving_, lock_);
  base::Result<Address> peer_name() override;
  base::Result<Address> own_name() override;
  Status set_option(int level, int name, const void* value, socklen_t length) override;
  Status get_option(int level, int name, void* value, socklen_t* length) override;
  base::Result<off_t> map(void* memory, size_t bytes, int protection, off_t offset) override;
  Status unmap(void* memory, size_t bytes) override;
  base::Result<size_t> write_mapped(IoCursor from, off_t offset, int flags) override;

 private:
  Stream(CmLink link, int family, const Options& options)
      : link_(std::move(link)), family_(family), options_(options) {}

  // What BlockingSocket asks for.
  void progress() override RINGBOLT_REQUIRES(lock_);
  short events_now(short events) const override RINGBOLT_REQUIRES(lock_);
  bool arm() override RINGBOLT_REQUIRES(lock_);
  void add_waits(std::vector<pollfd>& waits) const override RINGBOLT_REQUIRES(lock_);
  void take_events() override RINGBOLT_REQUIRES(lock_);

  // The way to a connection, and what the connection manager says.
  void resolve_address() RINGBOLT_REQUIRES(lock_);
  void resolve_route() RINGBOLT_REQUIRES(lock_);
  void request_connection() RINGBOLT_REQUIRES(lock_);
  Status make_connection() RINGBOLT_REQUIRES(lock_);
  Status become_accepted(const Request& request) RINGBOLT_EXCLUDES(lock_);
  Status await_connected(const Deadline& deadline) RINGBOLT_REQUIRES(lock_);
  void handle_events() RINGBOLT_REQUIRES(lock_);
  void handle_event(const rdma_cm_event& event) RINGBOLT_REQUIRES(lock_);
  void handle_established(const rdma_cm_event& event) RINGBOLT_REQUIRES(lock_);
  void handle_disconnected() RINGBOLT_REQUIRES(lock_);

  bool has_data_part() const RINGBOLT_REQUIRES(lock_) { return connection_.has_value() && state_.may_have_data(); }
  void fail(int error) RINGBOLT_REQUIRES(lock_);
  void note_peer() RINGBOLT_REQUIRES(lock_);
  void keep_alive() RINGBOLT_REQUIRES(lock_);
  Status say_goodbye(Control what, const Deadline& deadline) RINGBOLT_REQUIRES(lock_);
  Status await_arrival(const Deadline& deadline) RINGBOLT_REQUIRES(lock_);

  // stream_transfer.cpp
  int objection_to_send() const RINGBOLT_REQUIRES(lock_) { return state_.objection_to_send(directions_); }
  Status send_mappings(const Deadline& deadline) RINGBOLT_REQUIRES(lock_);
  template <class CanSend, class SendOne>
  base::Result<size_t> send_all(IoCursor& from, int flags, CanSend can_send, SendOne send_one)
      RINGBOLT_EXCLUDES(sending_, lock_);

  CmLink link_;
  const int family_;
  // Held for a whole call of send or receive, while lock_ is given up at times: bytes of two senders must not mix,
  // and Connection relies on one at a time.
  base::Mutex sending_ RINGBOLT_ACQUIRED_BEFORE(lock_);
  base::Mutex receiving_ RINGBOLT_ACQUIRED_BEFORE(lock_);
  Options options_ RINGBOLT_GUARDED_BY(lock_);
  StreamState state_ RINGBOLT_GUARDED_BY(lock_);
  OpeningSteps steps_ RINGBOLT_GUARDED_BY(lock_);
  Directions directions_ RINGBOLT_GUARDED_BY(lock_);
  Keepalive keepalive_ RINGBOLT_GUARDED_BY(lock_);
  bool is_armed_ RINGBOLT_GUARDED_BY(lock_) = false;
  // in a row
  unsigned idle_polls_ RINGBOLT_GUARDED_BY(lock_) = 0;
  Address peer_ RINGBOLT_GUARDED_BY(lock_);
  // Gone before link_, whose id its queue pair is of. Made once: a socket that has failed is not used again.
  std::optional<Connection> connection_ RINGBOLT_GUARDED_BY(lock_);
  Mappings mappings_ RINGBOLT_GUARDED_BY(lock_);
  RequestQueue requests_ RINGBOLT_GUARDED_BY(lock_);
};

}  // namespace ringbolt::rsocket
