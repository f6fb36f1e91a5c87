#include <sys/socket.h>

#include "rsocket/stream.h"
#include "rsocket/stream_wait.h"

namespace ringbolt::rsocket {
namespace {

/// How long closing waits for a connection whose last message of the set-up is still under way.
constexpr uint64_t kSetUpNs = 5'000'000'000;

}  // namespace

Status Stream::shut_down(int how) {
  if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR) {
    return base::fail(EINVAL);
  }
  const base::LockGuard lock(lock_);
  const Deadline deadline = linger_deadline();
  const auto status = await_connected(deadline);
  if (!status || phase_ != Phase::connected) {
    return status;
  }
  may_read_ = may_read_ && how == SHUT_WR;
  may_write_ = may_write_ && how == SHUT_RD;
  watchers_.ring();
  if (may_write_) {
    return {};  // the peer is not told that nobody listens; it will find out by what it gets no room for
  }
  // The end of our stream is told once; a second message only if it says more.
  const Control what = may_read_ ? Control::shutdown : Control::disconnect;
  return has_said_goodbye_ && what == Control::shutdown ? Status{} : say_goodbye(what, deadline);
}

/// Tells the peer, and waits until that and all before it has arrived.
Status Stream::say_goodbye(Control what, const Deadline& deadline) {
  const auto is_over = [this]() RINGBOLT_REQUIRES(lock_) { return phase_ != Phase::connected; };
  const auto status = wait_through_signals(
      deadline, [&]() RINGBOLT_REQUIRES(lock_) { return connection_->can_send_control() || is_over(); });
  if (!status || is_over()) {
    return status;
  }
  connection_->send_control(what);
  has_said_goodbye_ = true;
  const auto arrived = await_arrival(deadline);
  if (arrived && what == Control::disconnect && phase_ == Phase::connected) {
    phase_ = Phase::closed;
    watchers_.ring();
  }
  return arrived;
}

/// Waits until everything sent has reached the peer's memory, or nobody is there to take it.
Status Stream::await_arrival(const Deadline& deadline) {
  return wait_through_signals(deadline, [this]() RINGBOLT_REQUIRES(lock_) {
    return connection_->is_idle() || phase_ == Phase::failed || connection_->peer_has_disconnected();
  });
}

/// A signal does not end this: a program that calls close() again would close somebody else's socket.
template <class Done>
Status Stream::wait_through_signals(const Deadline& deadline, Done done) {
  Status status;
  do {
    status = wait(deadline, done);
  } while (!status && status.error().value == EINTR);
  return status;
}

void Stream::close() {
  const base::LockGuard lock(lock_);
  if (phase_ == Phase::accepting) {
    (void)await_connected(Deadline::in_ns(kSetUpNs));
  }
  const Deadline deadline = linger_deadline();
  if (phase_ == Phase::connected) {
    may_read_ = false;
    may_write_ = false;
    (void)say_goodbye(Control::disconnect, deadline);
  }
  if (phase_ == Phase::closed && connection_.has_value()) {
    (void)await_arrival(deadline);
  }
  requests_.clear();
  if (has_data_part()) {
    rdma_disconnect(link_.id());
  }
  phase_ = Phase::closed;
  watchers_.ring();
}

}  // namespace ringbolt::rsocket
