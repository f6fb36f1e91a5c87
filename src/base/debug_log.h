#pragma once

#include <atomic>
#include <cstdint>

namespace ringbolt::base {

/// Whether RINGBOLT_LOG=debug asks for lines on standard error. Looks at the environment: ask once.
bool is_debug_log_wanted();

/// Lets one line a second through, whoever writes it. Thread-safe. Nobody waits in it.
class LinePace {
 public:
  bool may_say(uint64_t now_ns) {
    // Relaxed: nothing but the pace depends on it, and of threads that come at once the exchange lets one through.
    uint64_t next_ns = next_ns_.load(std::memory_order_relaxed);
    return now_ns >= next_ns && next_ns_.compare_exchange_strong(next_ns, now_ns + kPauseNs, std::memory_order_relaxed);
  }

 private:
  static constexpr uint64_t kPauseNs = 1'000'000'000;
  std::atomic<uint64_t> next_ns_{0};
};

}  // namespace ringbolt::base
