#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace ringbolt::stream {

/// When a call gives up. Every call has one. The clock is read when somebody first has to wait: most calls don't. A
/// value of the thread that makes the call.
class Deadline {
 public:
  /// Has passed already: the call does not block.
  static Deadline now() { return Deadline(0); }
  static Deadline in_ms(uint64_t ms) { return Deadline(std::min(ms, kMostMs) * 1'000'000); }

  bool is_now() const { return after_ns_ == 0; }
  bool is_over(uint64_t now_ns) const { return now_ns >= ns(); }
  /// base::now_ns() of the end; 0 for now(). Reads the clock the first time.
  uint64_t ns() const {
    if (at_ns_ == 0 && !is_now()) {
      at_ns_ = base::now_ns() + after_ns_;
    }
    return at_ns_;
  }

 private:
  static constexpr uint64_t kMostMs = uint64_t{365} * 24 * 3'600'000;  // farther away the sum could wrap
  explicit Deadline(uint64_t after_ns) : after_ns_(after_ns) {}
  uint64_t after_ns_;
  mutable uint64_t at_ns_ = 0;  // 0: not asked for yet
};

}  // namespace ringbolt::stream
