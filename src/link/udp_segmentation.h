#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "link/udp_message.h"

namespace ringbolt::link {

/// Remembers where the kernel refused to segment (GSO), so that each place is asked once and not with every message.
/// Forgets old places when new ones need the room. Thread-safe.
class UdpSegmentationMemory {
 public:
  bool is_refused(const UdpPath& path) const {
    if (!has_places_.load(std::memory_order_relaxed)) [[likely]] {
      return false;  // asked for every message, and most kernels refuse none
    }
    const uint64_t key = key_of(path);
    return places_[key % kPlaces].load(std::memory_order_relaxed) == key;
  }
  void refuse(const UdpPath& path) {
    const uint64_t key = key_of(path);
    places_[key % kPlaces].store(key, std::memory_order_relaxed);
    has_places_.store(true, std::memory_order_relaxed);  // who misses it asks once more, and is refused
  }

 private:
  // Two places that share one take turns in being asked anew: slower, not wrong.
  static constexpr size_t kPlaces = 64;
  /// Never 0, which means nothing.
  static uint64_t key_of(const UdpPath& path);
  std::array<std::atomic<uint64_t>, kPlaces> places_{};
  std::atomic<bool> has_places_{false};
};

}  // namespace ringbolt::link
