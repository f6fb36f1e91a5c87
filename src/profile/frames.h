#pragma once

#include <algorithm>
#include <cstdint>

/// Queues whose depth is counted in frames of 4 KiB. Sources: Apple TN3205 (unit, largest grant, largest message); what
/// is granted for small requests was seen by one user. Pure. Thread-safe.
namespace ringbolt::profile {

inline constexpr uint32_t kFrameBytes = 4096;
// 1023: seen by a user who asked for few; 4095 frames: TN3205.
inline constexpr uint32_t kLeastGrantFrames = 1023;
inline constexpr uint32_t kMostGrantFrames = 4095;

/// How many frames a message takes; an empty one takes one. `bytes` below 16 TiB, or the count wraps; messages have
/// 2^32 - 1 bytes at most.
constexpr uint32_t frames_of(uint64_t bytes) {
  return bytes == 0 ? 1 : static_cast<uint32_t>((bytes + kFrameBytes - 1) / kFrameBytes);
}

/// What a queue pair that asks for `wanted` work requests gets.
constexpr uint32_t granted_frames(uint32_t wanted) { return std::clamp(wanted, kLeastGrantFrames, kMostGrantFrames); }

}  // namespace ringbolt::profile
