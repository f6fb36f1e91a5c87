#include "device/service_ticks.h"

#include <algorithm>

namespace ringbolt::device {

int ServiceTicks::until(uint64_t now_ns, uint64_t deadline_ns) {
  const uint64_t wait = deadline_ns <= now_ns ? 0 : (deadline_ns - now_ns - 1) / 1'000'000 + 1;
  return static_cast<int>(std::clamp<uint64_t>(wait, kFirstMs, kLastMs));
}

int ServiceTicks::next(int last_ms, const ServiceFindings& found, uint64_t now_ns) {
  if (found.changes_by_clock) {
    return kClockMs;
  }
  if (found.deadline_ns != UINT64_MAX) {
    return until(now_ns, found.deadline_ns);
  }
  switch (found.remains) {
    case Remains::nothing:
      return linger(last_ms);
    case Remains::work:
      return kFirstMs;
    case Remains::timers:
      break;
  }
  // What was there when nothing was, the last time, has only just begun.
  const bool is_new = last_ms < 0 || quiet_looks_ != 0;
  quiet_looks_ = 0;
  return is_new ? kFirstMs : std::min(last_ms * 2, kLastMs);
}

/// There is nothing to look at; there was, not long ago, and may be again.
int ServiceTicks::linger(int last_ms) {
  if (last_ms < 0 || ++quiet_looks_ > kMostQuiet) {
    quiet_looks_ = 0;
    return kNoTick;
  }
  return kQuietMs;
}

}  // namespace ringbolt::device
