// How threads sleep on a stream, and what its descriptor says.

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

#include "stream/stream_wait.h"

namespace ringbolt::stream {
namespace {

// Nobody sleeps longer without a look of his own: an end by another thread's close() has no descriptor.
constexpr uint64_t kMaxSleepNs = 250'000'000;

timespec time_of(uint64_t ns) {
  return {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
}

}  // namespace

/// Makes the next completion an event. False: something has come meanwhile.
bool Stream::arm() {
  if (!connection_ || is_over()) {
    return true;
  }
  if (!is_armed_) {
    is_armed_ = connection_->endpoint().arm() == 0;
    has_polled_armed_ = false;
  }
  if (!connection_->progress()) {
    return true;
  }
  has_polled_armed_ = is_armed_;
  note_end();
  return false;
}

/// One thread sleeps on the descriptors for all, since who takes an event off them takes it from the others; the rest
/// wait for its word.
void Stream::sleep_until(uint64_t until_ns) {
  const uint64_t now_ns = base::now_ns();
  uint64_t wake_ns = std::min(until_ns, now_ns + kMaxSleepNs);
  if (is_led_) {
    changed_.wait_for(mutex_, std::chrono::nanoseconds(wake_ns - std::min(now_ns, wake_ns)));
    return;
  }
  if (!arm()) {
    return;
  }
  wake_ns = connection_ ? std::min(wake_ns, connection_->next_tick_ns()) : wake_ns;
  wake_ns = phase_ == Phase::connected ? wake_ns : std::min(wake_ns, opening_until_ns_);
  const timespec limit = time_of(wake_ns - std::min(now_ns, wake_ns));
  std::array<pollfd, 2> readable{
      {{connection_ ? connection_->endpoint().channel_fd() : -1, POLLIN, 0}, {channel_.fd(), POLLIN, 0}}};
  is_led_ = true;
  {
    const base::Unlocked unlocked(mutex_);
    ::ppoll(readable.data(), readable.size(), &limit, nullptr);
  }
  is_led_ = false;
  if (readable[0].revents != 0 && connection_ && connection_->endpoint().take_event()) {
    is_armed_ = false;
  }
  if (readable[1].revents != 0) {
    take_cm_events();
  }
  changed_.notify_all();
}

/// Before a call returns: the descriptor says what there is, and the queue is armed, so that it says what comes.
void Stream::settle() {
  if (!readiness_) {
    return;
  }
  // A leader takes the events by itself, and settles when it returns.
  constexpr int kTries = 4;  // something may come again and again: then there is something to do anyhow
  for (int i = 0; i < kTries && connection_ && !is_over() && !is_led_; ++i) {
    if (is_armed_ && (has_polled_armed_ || was_idle_)) {
      is_armed_ = !connection_->endpoint().take_event();
      has_polled_armed_ = false;
    }
    if (arm()) {
      break;
    }
  }
  readiness_->ring(is_there(wanted_ | (asks_for_room_ ? uint32_t{kWritable} : 0U)));
}

void Stream::look_after() {
  if (!mutex_.try_lock()) {
    return;  // a thread of the program is in it, and looks by itself
  }
  const base::LockGuard lock(mutex_, base::kAdoptLock);
  if (waiting_ == 0 && !is_over()) {
    look();
    looked_at_cm_ns_ = 0;
    look_around();
    if (connection_ && !is_over()) {
      connection_->repost();
    }
    settle();
  }
}

}  // namespace ringbolt::stream
