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
  base::Result<size_t> receive(IoCursor to, int flags, Address* from) override;
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
  using Lock = Connection::Lock;
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

  // stream_connect.cpp: the way to a connection. All with the lock held.
  void resolve_address();
  void resolve_route();
  void request_connection();
  Status make_connection();
  Status join(const void* private_data, size_t bytes);
  Status await_connected(Lock& lock, const Deadline& deadline);

  // stream_accept.cpp: likewise, from the other end.
  Status become_accepted(const rdma_conn_param& request, const ConnectionData& peer);
  void take_request(CmEvent event);

  // stream_events.cpp: what the connection manager says.
  void handle_events();
  void handle_event(const rdma_cm_event& event);
  void handle_failed_step(const rdma_cm_event& event);
  void handle_established(const rdma_cm_event& event);
  void handle_disconnected();

  // stream.cpp: progress and waiting. All with the lock held.
  bool is_opening() const { return phase_ >= Phase::resolving_address && phase_ <= Phase::accepting; }
  bool has_data_part() const { return connection_.has_value() && phase_ >= Phase::accepting; }
  bool is_nonblocking(int flags) const;
  Deadline deadline_of(const timeval& timeout, int flags) const;
  Deadline linger_deadline() const;
  void fail(int error);
  void progress();
  void note_peer();
  void keep_alive();
  short events_now(short events) const;
  void add_waits(std::vector<pollfd>& waits) const;
  void take_events();
  bool arm();
  /// Makes progress until `done()`, or `deadline`: EAGAIN; or a signal: EINTR. Polls for a while, then sleeps.
  template <class Done>
  Status wait(Lock& lock, const Deadline& deadline, Done done);

  // stream_transfer.cpp
  int reason_not_to_send() const;
  int take_error(int error);
  Status send_mappings(Lock& lock, const Deadline& deadline);
  template <class CanSend, class SendOne>
  base::Result<size_t> send_all(IoCursor& from, int flags, CanSend can_send, SendOne send_one);

  // stream_close.cpp
  Status say_goodbye(Lock& lock, Control what, const Deadline& deadline);
  Status await_arrival(Lock& lock, const Deadline& deadline);
  template <class Done>
  Status wait_through_signals(Lock& lock, const Deadline& deadline, Done done);

  CmLink link_;
  const int family_;
  base::Mutex sending_;    ///< taken before lock_
  base::Mutex receiving_;  ///< taken before lock_
  base::Mutex lock_;       ///< guards all below
  std::atomic<int> file_flags_{0};
  Options options_;
  Phase phase_ = Phase::fresh;
  bool may_read_ = true;
  bool may_write_ = true;
  bool has_said_goodbye_ = false;  ///< the peer knows, or will, that we send no more
  bool is_armed_ = false;
  int error_ = 0;             ///< why it failed, for good
  int unreported_error_ = 0;  ///< for SO_ERROR
  int attempts_ = 0;          ///< of the step of connecting that is under way
  unsigned idle_polls_ = 0;
  uint64_t heard_at_ns_ = 0;
  Address peer_;
  std::optional<Connection> connection_;
  Mappings mappings_;
  WatchList watchers_;
  std::deque<Request> requests_;
};

}  // namespace ringbolt::rsocket
