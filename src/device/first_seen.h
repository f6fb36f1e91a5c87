#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

namespace ringbolt::device {

/// The first of what turns up under spin locks, where nothing may be said, until somebody without locks says it.
/// Thread-safe.
class FirstSeen {
 public:
  struct Seen {
    uint32_t qpn = 0;
    uint32_t bytes = 0;
  };

  /// False: it is not the first.
  bool note(uint32_t qpn, uint32_t bytes) {
    uint64_t nothing = 0;
    return seen_.load(std::memory_order_relaxed) == nothing &&
           seen_.compare_exchange_strong(nothing, (uint64_t{qpn} << 32U) | bytes, std::memory_order_relaxed);
  }

  /// Once: what was noted.
  std::optional<Seen> take() {
    uint64_t seen = seen_.load(std::memory_order_relaxed);
    if (seen == 0 || seen == kTold || !seen_.compare_exchange_strong(seen, kTold, std::memory_order_relaxed)) {
      return std::nullopt;
    }
    return Seen{static_cast<uint32_t>(seen >> 32U), static_cast<uint32_t>(seen)};
  }

 private:
  static constexpr uint64_t kTold = UINT64_MAX;  // queue pair numbers have 24 bits
  std::atomic<uint64_t> seen_{0};
};

}  // namespace ringbolt::device
