#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"

namespace ringbolt::fabric {

inline constexpr uint32_t kMaxWatchedRanks = 64;

/// What a rank says of itself, and of the others, every interval: through each of its cables, and to all through the
/// side channel. A value. Layout: docs/formats/liveness.md. Counters of ranks from n_ranks on are not sent.
struct Heartbeat {
  uint32_t rank = 0;         ///< of the sender
  uint32_t n_ranks = 1;      ///< up to kMaxWatchedRanks
  uint32_t epoch = 0;        ///< of the group
  uint64_t incarnation = 0;  ///< of the sender's process: random, not 0
  /// Hosts that the sender knows at first hand to answer, be their processes frozen or not: bit r for rank r.
  uint64_t hosts = 0;
  /// Progress counters by rank, as far as the sender knows: its own counts the turns of its progress thread. [n_ranks]
  std::array<uint64_t, kMaxWatchedRanks> counters{};
  friend bool operator==(const Heartbeat&, const Heartbeat&) = default;
};

inline constexpr size_t kHeartbeatFixedBytes = 32;
inline constexpr size_t kMaxHeartbeatBytes = kHeartbeatFixedBytes + 8 * kMaxWatchedRanks;
constexpr size_t heartbeat_bytes(uint32_t n_ranks) { return kHeartbeatFixedBytes + 8 * size_t{n_ranks}; }

/// Into the first heartbeat_bytes(n_ranks) bytes of `out`; returns how many. `rank` is below n_ranks, and `out` long
/// enough: anything else is a bug.
size_t emit(const Heartbeat& heartbeat, std::span<std::byte> out);
/// Errors: EBADMSG (wrong length, rank or number of ranks out of range, incarnation 0), EPROTONOSUPPORT (another
/// version).
base::Result<Heartbeat> parse_heartbeat(std::span<const std::byte> in);

}  // namespace ringbolt::fabric
