#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace ringbolt::stream {

/// When a call gives up. Every call has one. A value.
class Deadline {
 public:
  /// Has passed already: the call does not block.
  static Deadline now() { return Deadline(0); }
  static Deadline in_ms(uint64_t ms) {
    return ms == 0 ? now() : Deadline(base::now_ns() + std::min(ms, kMostMs) * 1'000'000);
  }
  static Deadline at_ns(uint64_t ns) { return Deadline(ns); }

  bool is_now() const { return at_ns_ == 0; }
  bool is_over(uint64_t now_ns) const { return now_ns >= at_ns_; }
  uint64_t ns() const { return at_ns_; }

 private:
  static constexpr uint64_t kMostMs = uint64_t{365} * 24 * 3'600'000;  // farther away the sum could wrap
  explicit Deadline(uint64_t at_ns) : at_ns_(at_ns) {}
  uint64_t at_ns_;
};

}  // namespace ringbolt::stream
