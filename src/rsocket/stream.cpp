#include "rsocket/stream.h"

#include <fcntl.h>

namespace ringbolt::rsocket {
namespace {

/// Polls that found nothing between two looks at the event channel, which costs a system call.
constexpr unsigned kPollsPerLook = 256;
/// How long closing waits for a peer that lives but does not take what was sent, if SO_LINGER says nothing.
constexpr uint64_t kLingerNs = 60'000'000'000;

}  // namespace

base::Result<std::shared_ptr<Socket>> Stream::create(int family) {
  auto link = CmLink::create(RDMA_PS_TCP);
  if (!link) {
    return base::fail(link.error().value);
  }
  Options options;
  options.settings = default_settings();
  return std::shared_ptr<Socket>(new Stream(std::move(*link), family, options));
}

Stream::~Stream() = default;

Status Stream::set_file_flags(int flags) {
  file_flags_ = flags;
  return {};
}

base::Result<Address> Stream::peer_name() {
  const base::LockGuard lock(lock_);
  if (phase_ < Phase::accepting || peer_.length() == 0) {
    return base::fail(ENOTCONN);
  }
  return peer_;
}

base::Result<Address> Stream::own_name() {
  const base::LockGuard lock(lock_);
  Address own = Address::from(*rdma_get_local_addr(link_.id()));
  if (own.length() == 0) {
    own.storage.ss_family = static_cast<sa_family_t>(family_);
  }
  return own;
}

bool Stream::is_nonblocking(int flags) const {
  return (flags & MSG_DONTWAIT) != 0 || (file_flags_.load() & O_NONBLOCK) != 0;
}

Deadline Stream::deadline_of(const timeval& timeout, int flags) const {
  if (is_nonblocking(flags)) {
    return Deadline::in_ns(0);
  }
  const uint64_t ns =
      static_cast<uint64_t>(timeout.tv_sec) * 1'000'000'000U + static_cast<uint64_t>(timeout.tv_usec) * 1000U;
  return ns == 0 ? Deadline::never() : Deadline::in_ns(ns);
}

Deadline Stream::linger_deadline() const {
  const linger& asked = options_.linger_time;
  const auto seconds = static_cast<uint64_t>(std::max(asked.l_linger, 0));
  return Deadline::in_ns(asked.l_onoff != 0 ? seconds * 1'000'000'000U : kLingerNs);
}

void Stream::fail(int error) {
  if (phase_ != Phase::failed && phase_ != Phase::closed) {
    phase_ = Phase::failed;
    error_ = error;
    unreported_error_ = error;
  }
  watchers_.ring();
}

void Stream::progress() {
  if (is_opening() || phase_ == Phase::listening) {
    handle_events();
  }
  if (!has_data_part()) {
    return;
  }
  if (connection_->progress()) {
    note_peer();
    watchers_.ring();
    idle_polls_ = 0;
  } else if (++idle_polls_ % kPollsPerLook == 0) {
    handle_events();
  }
  if (connection_->error() != 0) {
    fail(connection_->error());
  }
}

/// Draws the conclusions of what the peer has sent.
void Stream::note_peer() {
  if (options_.keepalive != 0) {
    heard_at_ns_ = base::now_ns();
  }
  // Data may overtake the last message of the connection's set-up, and is as good.
  if (phase_ == Phase::accepting && connection_->has_heard_from_peer()) {
    phase_ = Phase::connected;
  }
  if (connection_->peer_has_shut_down()) {
    may_read_ = false;
  }
  const bool both_finished = connection_->peer_has_shut_down() && has_said_goodbye_;
  if (phase_ == Phase::connected && (connection_->peer_has_disconnected() || both_finished)) {
    phase_ = Phase::closed;
  }
}

/// A peer that vanished says nothing: a WRITE of no bytes finds out. Done by whoever waits.
void Stream::keep_alive() {
  if (options_.keepalive == 0 || phase_ != Phase::connected) {
    return;
  }
  const uint64_t now_ns = base::now_ns();
  const auto idle_ns = static_cast<uint64_t>(options_.keepalive_idle_s) * 1'000'000'000U;
  if (now_ns - heard_at_ns_ >= idle_ns && connection_->can_send_control()) {
    connection_->send_control(Control::keepalive);
    heard_at_ns_ = now_ns;
  }
}

short Stream::events_now(short events) const {
  constexpr int kIn = POLLIN | POLLRDNORM;
  constexpr int kOut = POLLOUT | POLLWRNORM;
  int now = 0;
  const bool has_data = connection_.has_value() && connection_->readable() > 0;
  switch (phase_) {
    case Phase::listening:
      now = requests_.empty() ? 0 : kIn;
      break;
    case Phase::connected:
      now |= has_data || !may_read_ ? kIn : 0;
      now |= may_write_ && connection_->can_send(kFirstPieceBytes) ? kOut : 0;
      now |= may_read_ ? 0 : POLLRDHUP;
      break;
    case Phase::closed:
      // While there is something to read, programs that take a hang-up for the end would lose it.
      return static_cast<short>(has_data ? events & kIn : (events & (kIn | POLLRDHUP)) | POLLHUP);
    case Phase::failed:
      return static_cast<short>(has_data ? events & kIn : (events & (kIn | kOut)) | POLLERR);
    default:
      break;
  }
  return static_cast<short>(now & events);
}

void Stream::add_waits(std::vector<pollfd>& waits) const {
  waits.push_back({link_.fd(), POLLIN, 0});
  if (has_data_part()) {
    waits.push_back({connection_->endpoint().channel_fd(), POLLIN, 0});
  }
}

void Stream::take_events() {
  if (connection_.has_value() && connection_->endpoint().take_events()) {
    is_armed_ = false;
  }
  handle_events();
}

/// Whether the completion queue was not armed, and is now.
bool Stream::arm() {
  if (is_armed_ || !has_data_part()) {
    return false;
  }
  const int error = connection_->endpoint().arm();
  if (error != 0) {
    fail(error);
  }
  is_armed_ = true;
  return true;
}

short Stream::poll(short events) {
  const base::LockGuard lock(lock_);
  progress();
  return events_now(events);
}

short Stream::begin_sleep(short events, Sleeper& sleeper, std::vector<pollfd>& waits) {
  const base::LockGuard lock(lock_);
  do {
    progress();
    const short now = events_now(events);
    if (now != 0) {
      return now;
    }
  } while (arm());
  watchers_.add(sleeper);
  add_waits(waits);
  return 0;
}

void Stream::end_sleep(Sleeper& sleeper) {
  const base::LockGuard lock(lock_);
  watchers_.remove(sleeper);
  take_events();
  keep_alive();
}

}  // namespace ringbolt::rsocket
