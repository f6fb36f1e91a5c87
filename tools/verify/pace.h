#pragma once

#include <cstdint>

#include "base/clock.h"
#include "stop.h"
#include "verify/step.h"

namespace ringbolt::tools::verify {

/// When a step has done enough: by count or by time, or because somebody wants it to stop. Not thread-safe.
class Pace {
 public:
  explicit Pace(const Step& step)
      : count_(step.count), end_ns_(base::now_ns() + step.duration_ms * 1'000'000), has_end_(step.duration_ms != 0) {}

  /// Whether another is wanted after `done`. Hot path: looks at the clock every 16th time only.
  bool wants_more(uint64_t done) {
    if (is_over_ || (count_ != 0 && done >= count_)) {
      return false;
    }
    constexpr uint32_t kSkipped = 16;
    if (calls_++ % kSkipped == 0) {
      is_over_ = is_stopped() || (has_end_ && base::now_ns() >= end_ns_);
    }
    return !is_over_;
  }

 private:
  uint64_t count_;
  uint64_t end_ns_;
  bool has_end_;
  bool is_over_ = false;
  uint32_t calls_ = 0;
};

}  // namespace ringbolt::tools::verify
