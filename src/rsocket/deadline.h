#pragma once

#include <sys/time.h>

#include <algorithm>
#include <climits>
#include <cstdint>

#include "base/clock.h"

namespace ringbolt::rsocket {

/// Nobody sleeps longer than this without looking for himself: what a lost wake-up costs, where no descriptor was left
/// for a bell.
inline constexpr uint64_t kMaxSleepNs = 500'000'000;

/// Nanoseconds of a time that a program gave; not negative. Of one that is too long: UINT64_MAX.
constexpr uint64_t ns_of(const timeval& time) {
  constexpr uint64_t kNsPerSecond = 1'000'000'000;
  const auto seconds = static_cast<uint64_t>(time.tv_sec);
  const uint64_t rest_ns = static_cast<uint64_t>(time.tv_usec) * 1000U;
  return seconds > (UINT64_MAX - rest_ns) / kNsPerSecond ? UINT64_MAX : seconds * kNsPerSecond + rest_ns;
}

/// When a call gives up. A value of the thread that makes the call.
/// At base::now_ns(); UINT64_MAX is never.
class Deadline {
 public:
  static Deadline never() { return Deadline(UINT64_MAX); }
  static Deadline in_ns(uint64_t ns) {
    const uint64_t now = base::now_ns();
    return Deadline(ns > UINT64_MAX - now ? UINT64_MAX : now + ns);
  }
  /// As poll() counts: milliseconds, negative for never.
  static Deadline in_ms(int ms) { return ms < 0 ? never() : in_ns(static_cast<uint64_t>(ms) * 1'000'000); }
  /// As SO_RCVTIMEO and SO_SNDTIMEO have it: 0 stands for never.
  static Deadline of_option(const timeval& timeout) {
    const uint64_t ns = ns_of(timeout);
    return ns == 0 ? never() : in_ns(ns);
  }
  /// As select() has it: null stands for never, and 0 is over at once.
  static Deadline of_select(const timeval* timeout) { return timeout == nullptr ? never() : in_ns(ns_of(*timeout)); }

  bool is_over() const { return at_ns_ != UINT64_MAX && base::now_ns() >= at_ns_; }
  /// How long one sleep may take, as poll() counts: up to here, and at most `most_ns`; UINT64_MAX sets no such bound,
  /// and without any it is negative. Rounded up to whole milliseconds.
  int sleep_ms(uint64_t most_ns = kMaxSleepNs) const {
    const uint64_t now = base::now_ns();
    const uint64_t left = at_ns_ == UINT64_MAX ? UINT64_MAX : at_ns_ <= now ? 0 : at_ns_ - now;
    const uint64_t ns = std::min(left, most_ns);
    constexpr uint64_t kMostMs = INT_MAX;
    return ns == UINT64_MAX ? -1 : static_cast<int>(std::min(ns / 1'000'000 + (ns % 1'000'000 == 0 ? 0 : 1), kMostMs));
  }

 private:
  explicit Deadline(uint64_t at_ns) : at_ns_(at_ns) {}
  uint64_t at_ns_;
};

}  // namespace ringbolt::rsocket
