#pragma once

#include <poll.h>

#include <cerrno>
#include <utility>

#include "rsocket/directions.h"

namespace ringbolt::rsocket {

/// How far a stream socket has come, in this order; but that one which has failed may close.
enum class Phase {
  fresh,
  bound,
  listening,
  resolving_address,
  resolving_route,
  connecting,  ///< the peer has been asked
  accepting,   ///< the peer's request is answered, and its last word not heard
  connected,
  closed,  ///< both directions are over; what has come in can still be read
  failed,  ///< error() says why
};

/// The phase of a stream socket, and the error that it ended with. No clock, no memory. Not thread-safe: under the
/// socket's lock.
class StreamState {
 public:
  Phase phase() const { return phase_; }
  bool is(Phase phase) const { return phase_ == phase; }
  bool is_opening() const { return phase_ >= Phase::resolving_address && phase_ <= Phase::accepting; }
  bool is_over() const { return phase_ >= Phase::closed; }
  /// Data may have come, or may go yet.
  bool may_have_data() const { return phase_ >= Phase::accepting; }

  /// Not to Phase::failed.
  void enter(Phase phase) { phase_ = phase; }
  /// No effect once it is over: the first error is the one.
  void fail(int error) {
    if (!is_over()) {
      phase_ = Phase::failed;
      error_ = error;
      unreported_error_ = error;
    }
  }

  /// Why it failed, for good; 0: it has not.
  int error() const { return error_; }
  /// An error that a call gives its caller, who is not told a second time by SO_ERROR. Returns it.
  /// `error` is what the call answers, not changed.
  int report(int error) {
    unreported_error_ = 0;
    return error;
  }
  /// For SO_ERROR, which tells it once.
  int take_unreported() { return std::exchange(unreported_error_, 0); }

  // 0, or the errno of a call that does not fit: bind(2), listen(2), connect(2).
  int objection_to_bind() const { return phase_ == Phase::fresh ? 0 : EINVAL; }
  int objection_to_listen() const { return phase_ <= Phase::listening ? 0 : EINVAL; }
  /// Of one that has failed: the connection manager's id is used up, and a new socket is needed.
  int objection_to_connect() const {
    return is_opening()                                            ? EALREADY
           : phase_ == Phase::connected || phase_ == Phase::closed ? EISCONN
           : phase_ == Phase::listening                            ? EINVAL
           : phase_ == Phase::failed                               ? ECONNABORTED
                                                                   : 0;
  }
  /// 0, or why no more can be sent.
  int objection_to_send(const Directions& directions) const {
    return phase_ == Phase::failed   ? error_
           : !directions.may_write() ? EPIPE
           : phase_ == Phase::closed ? ECONNRESET
                                     : 0;
  }

 private:
  Phase phase_ = Phase::fresh;
  int error_ = 0;
  int unreported_error_ = 0;
};

/// What poll() is told besides the state.
struct PollFacts {
  bool has_data = false;     ///< something to read
  bool has_room = false;     ///< a first piece of data could go now
  bool has_request = false;  ///< somebody waits for accept()
};

/// Which of `events` hold, and what poll() says unasked. Pure. Source: poll(2).
inline short poll_events(const StreamState& state, const Directions& directions, const PollFacts& facts, short events) {
  constexpr int kIn = POLLIN | POLLRDNORM;
  constexpr int kOut = POLLOUT | POLLWRNORM;
  int now = 0;
  switch (state.phase()) {
    case Phase::listening:
      now = facts.has_request ? kIn : 0;
      break;
    case Phase::connected:
      now |= facts.has_data || !directions.may_read() ? kIn : 0;
      now |= directions.may_write() && facts.has_room ? kOut : 0;
      now |= directions.may_read() ? 0 : POLLRDHUP;
      break;
    case Phase::closed:
      // While there is something to read, programs that take a hang-up for the end would lose it.
      return static_cast<short>(facts.has_data ? events & kIn : (events & (kIn | POLLRDHUP)) | POLLHUP);
    case Phase::failed:
      return static_cast<short>(facts.has_data ? events & kIn : (events & (kIn | kOut)) | POLLERR);
    default:
      break;
  }
  return static_cast<short>(now & events);
}

}  // namespace ringbolt::rsocket
