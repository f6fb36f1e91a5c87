#pragma once

#include <cstdint>

#include "device/remains.h"

namespace ringbolt::device {

/// What the service thread has found when it looked at what no program polls for.
struct ServiceFindings {
  Remains remains = Remains::nothing;  ///< the most urgent of all queues
  uint64_t deadline_ns = UINT64_MAX;   ///< the next timer that is looked at when it runs out; UINT64_MAX: none stands
  bool changes_by_clock = false;  ///< faults that come and go by the clock: looked at often, whatever else there is
};

/// How long the service thread sleeps between two looks at what no bell announces: briefly at first, then ever longer.
/// In milliseconds; kNoTick: until a bell rings. Remembers the looks before, and knows no clock. Not thread-safe.
class ServiceTicks {
 public:
  static constexpr int kNoTick = -1;
  // The shortest timeout that epoll_wait() has, of those that let it sleep.
  static constexpr int kFirstMs = 1;
  static constexpr int kLastMs = 64;
  static constexpr int kClockMs = 2;  ///< see ServiceFindings::changes_by_clock
  /// Sends that a sleeping program makes again and again, and that complete: looked at so often while there are some,
  /// and for so many looks after the last, so that posting one need not wake the service thread.
  static constexpr int kQuietMs = 8;
  static constexpr int kMostQuiet = 128;

  /// How long to sleep after a look that began at `now_ns` and found this. `last_ms`: what was agreed on before that
  /// look, kFirstMs if a bell has cut it short.
  int next(int last_ms, const ServiceFindings& found, uint64_t now_ns);
  /// Rounded up: a timer that is looked at too early is looked at twice. From kFirstMs to kLastMs.
  static int until(uint64_t now_ns, uint64_t deadline_ns);

 private:
  int linger(int last_ms);

  int quiet_looks_ = 0;  // that found nothing, since the last that found timers
};

}  // namespace ringbolt::device
