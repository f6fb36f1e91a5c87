#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "rsocket/cm_link.h"
#include "rsocket/connection.h"
#include "rsocket/mappings.h"
#include "rsocket/options.h"
#include "rsocket/settings.h"
#include "rsocket/socket.h"

namespace ringbolt::rsocket {

/// A stream socket: a connection manager's id, and once it is connected, the data part. There is no thread behind it:
/// each call takes along what has come in, and a call that waits sleeps on the completion channel and the event
/// channel. Thread-safe: one thread may send while another receives.
class Stream final : public Socket {
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
  int file_flags() const override { return file_flags_.load(); }
  Status set_file_flags(int flags) override;
  base::Result<off_t> map(void* memory, size_t bytes, int protection, off_t offset) override;
  Status unmap(void* memory, size_t bytes) override;
  base::Result<size_t> write_mapped(IoCursor from, off_t offset, int flags) override;
  short poll(short events) override;
  short begin_sleep(short events, Sleeper& sleeper, std::vector<pollfd>& waits) override;
  void end_sleep(Sleeper& sleeper) override;

 private:
  /// A long transfer begins with a short message, so that the peer can begin to copy. POLLOUT: such a one can go.
  static constexpr uint32_t kFirstPieceBytes = 8192;
  enum class Phase {
    fresh,
    bound,
    listening,
    resolving_address,
    resolving_route,
    connecting,
    accepting,
    connected,
    closed,  ///< both directions are over; what has come in can still be read
    failed,  ///< error_ says why
  };

  /// A request that waits for accept().
  struct Request {
    CmLink link;
    rdma_conn_param param;
    ConnectionData peer;
  };

  Stream(CmLink link, int family, const Options& options)
      : link_(std::move(link)), family_(family), options_(options) {}

  // stream_connect.cpp: the way to a connection.
  void resolve_address() RINGBOLT_REQUIRES(lock_);
  void resolve_route() RINGBOLT_REQUIRES(lock_);
  void request_connection() RINGBOLT_REQUIRES(lock_);
  Status make_connection() RINGBOLT_REQUIRES(lock_);
  Status join(const void* private_data, size_t bytes) RINGBOLT_REQUIRES(lock_);
  Status await_connected(const Deadline& deadline) RINGBOLT_REQUIRES(lock_);

  // stream_accept.cpp: likewise, from the other end.
  Status become_accepted(const rdma_conn_param& request, const ConnectionData& peer) RINGBOLT_EXCLUDES(lock_);
  void take_request(CmEvent event) RINGBOLT_REQUIRES(lock_);

  // stream_events.cpp: what the connection manager says.
  void handle_events() RINGBOLT_REQUIRES(lock_);
  void handle_event(const rdma_cm_event& event) RINGBOLT_REQUIRES(lock_);
  void handle_failed_step(const rdma_cm_event& event) RINGBOLT_REQUIRES(lock_);
  void handle_established(const rdma_cm_event& event) RINGBOLT_REQUIRES(lock_);
  void handle_disconnected() RINGBOLT_REQUIRES(lock_);

  // stream.cpp: progress and waiting.
  bool is_opening() const RINGBOLT_REQUIRES(lock_) {
    return phase_ >= Phase::resolving_address && phase_ <= Phase::accepting;
  }
  bool has_data_part() const RINGBOLT_REQUIRES(lock_) { return connection_.has_value() && phase_ >= Phase::accepting; }
  bool is_nonblocking(int flags) const;
  Deadline deadline_of(const timeval& timeout, int flags) const RINGBOLT_REQUIRES(lock_);
  Deadline linger_deadline() const RINGBOLT_REQUIRES(lock_);
  void fail(int error) RINGBOLT_REQUIRES(lock_);
  void progress() RINGBOLT_REQUIRES(lock_);
  void note_peer() RINGBOLT_REQUIRES(lock_);
  void keep_alive() RINGBOLT_REQUIRES(lock_);
  short events_now(short events) const RINGBOLT_REQUIRES(lock_);
  void add_waits(std::vector<pollfd>& waits) const RINGBOLT_REQUIRES(lock_);
  void take_events() RINGBOLT_REQUIRES(lock_);
  bool arm() RINGBOLT_REQUIRES(lock_);
  /// Makes progress until `done()`, or `deadline`: EAGAIN; or a signal: EINTR. Polls for a while, then sleeps.
  template <class Done>
  Status wait(const Deadline& deadline, Done done) RINGBOLT_REQUIRES(lock_);

  // stream_transfer.cpp
  int reason_not_to_send() const RINGBOLT_REQUIRES(lock_);
  int take_error(int error) RINGBOLT_REQUIRES(lock_);
  Status send_mappings(const Deadline& deadline) RINGBOLT_REQUIRES(lock_);
  template <class CanSend, class SendOne>
  base::Result<size_t> send_all(IoCursor& from, int flags, CanSend can_send, SendOne send_one)
      RINGBOLT_EXCLUDES(sending_, lock_);

  // stream_close.cpp
  Status say_goodbye(Control what, const Deadline& deadline) RINGBOLT_REQUIRES(lock_);
  Status await_arrival(const Deadline& deadline) RINGBOLT_REQUIRES(lock_);
  template <class Done>
  Status wait_through_signals(const Deadline& deadline, Done done) RINGBOLT_REQUIRES(lock_);

  CmLink link_;
  const int family_;
  base::Mutex sending_ RINGBOLT_ACQUIRED_BEFORE(lock_);
  base::Mutex receiving_ RINGBOLT_ACQUIRED_BEFORE(lock_);
  base::Mutex lock_;
  std::atomic<int> file_flags_{0};
  Options options_ RINGBOLT_GUARDED_BY(lock_);
  Phase phase_ RINGBOLT_GUARDED_BY(lock_) = Phase::fresh;
  bool may_read_ RINGBOLT_GUARDED_BY(lock_) = true;
  bool may_write_ RINGBOLT_GUARDED_BY(lock_) = true;
  bool has_said_goodbye_ RINGBOLT_GUARDED_BY(lock_) = false;  ///< the peer knows, or will, that we send no more
  bool is_armed_ RINGBOLT_GUARDED_BY(lock_) = false;
  int error_ RINGBOLT_GUARDED_BY(lock_) = 0;             ///< why it failed, for good
  int unreported_error_ RINGBOLT_GUARDED_BY(lock_) = 0;  ///< for SO_ERROR
  int attempts_ RINGBOLT_GUARDED_BY(lock_) = 0;          ///< of the step of connecting that is under way
  unsigned idle_polls_ RINGBOLT_GUARDED_BY(lock_) = 0;
  uint64_t heard_at_ns_ RINGBOLT_GUARDED_BY(lock_) = 0;
  Address peer_ RINGBOLT_GUARDED_BY(lock_);
  std::optional<Connection> connection_ RINGBOLT_GUARDED_BY(lock_);
  Mappings mappings_ RINGBOLT_GUARDED_BY(lock_);
  WatchList watchers_ RINGBOLT_GUARDED_BY(lock_);
  std::deque<Request> requests_ RINGBOLT_GUARDED_BY(lock_);
};

}  // namespace ringbolt::rsocket
