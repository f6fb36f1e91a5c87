#pragma once

// Hot path: no allocation, lock, clock, virtual call or I/O.

#include <algorithm>
#include <cstddef>

namespace ringbolt::device {

/// A message of another core's cache: its lines come at once, not the first ones, which are copied, and then the
/// others.
inline void fetch(const std::byte* message, size_t length) {
  constexpr size_t kLineBytes = 64;
  constexpr size_t kMostBytes = 4096 + 2 * kLineBytes;
  const std::byte* const end = message + std::min(length, kMostBytes);
  for (; message < end; message += kLineBytes) {
    __builtin_prefetch(message);
  }
}

}  // namespace ringbolt::device
