#pragma once

#include <cstdint>

/// What the device offers. Programs read these with ibv_query_device; going beyond them is refused.
namespace ringbolt::device {

inline constexpr uint32_t kMaxInlineBytes = 256;
inline constexpr uint32_t kMaxSge = 16;
inline constexpr uint32_t kMaxQueueDepth = 16384;
inline constexpr uint32_t kMaxCqe = 1U << 20U;
inline constexpr uint32_t kMaxSrqDepth = 32768;
inline constexpr uint32_t kMaxMessageBytes = 1U << 30U;
inline constexpr uint32_t kMaxReadAtomic = 16;
inline constexpr uint32_t kMaxObjects = 1U << 16U;  ///< PDs, CQs, SRQs, AHs of one process
inline constexpr uint32_t kMaxQueuePairs = 1U << 14U;
inline constexpr uint32_t kGidTableLength = 8;
inline constexpr uint32_t kDatagramBytes = 4096;  ///< the largest UD message: the path MTU
inline constexpr uint32_t kGrhBytes = 40;
inline constexpr uint32_t kQpnIndexBits = 14;  ///< a QPN is (process slot << 14) | index
/// RC gives up on a silent peer no sooner: software may be off its core for a while without being dead.
inline constexpr uint64_t kLeastTimeoutNs = 500'000'000;
/// How long a peer that is stopped in the middle of a copy holds up who takes the memory away.
inline constexpr uint64_t kAccessDrainNs = 1'000'000'000;

}  // namespace ringbolt::device
