#pragma once

#include <algorithm>
#include <cstdint>

namespace ringbolt::stream {

/// Lets `burst` things pass at once, and so many a second in the long run. Pure: time is an argument. Not thread-safe.
class FloodGauge {
 public:
  /// `per_second`: 1 to 10^9.
  constexpr FloodGauge(uint32_t burst, uint32_t per_second)
      : ns_each_(1'000'000'000U / per_second), most_ns_(ns_each_ * burst), left_ns_(most_ns_) {}

  /// Whether one more may pass now. `now_ns` never goes back.
  /// In nanoseconds of any clock. A token bucket whose level is counted in time.
  constexpr bool admit(uint64_t now_ns) {
    left_ns_ = std::min(most_ns_, left_ns_ + (now_ns - last_ns_));
    last_ns_ = now_ns;
    if (left_ns_ < ns_each_) {
      return false;
    }
    left_ns_ -= ns_each_;
    return true;
  }

 private:
  uint64_t ns_each_;
  uint64_t most_ns_;
  uint64_t left_ns_;
  uint64_t last_ns_ = 0;
};

}  // namespace ringbolt::stream
