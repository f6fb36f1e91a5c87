#pragma once

#include <cstdint>

#include "collective/problem.h"

namespace ringbolt::collective {

/// What a message costs. All ranks of a group must use the same: chunk sizes and the choice of a schedule follow from
/// it.
struct CostModel {
  double latency_us = 10;         ///< of one hop, whatever the size
  double bytes_per_us = 5000;     ///< of a cable of capacity 1, each way
  double chunk_us = 0;            ///< that a rank is busy with a chunk beside moving its bytes
  double relay_bytes_per_us = 0;  ///< that a rank relays beside its own work; 0: it costs nothing
  double add_bytes_per_us = 0;    ///< that a rank adds up of another's; 0: it costs nothing
  friend bool operator==(const CostModel&, const CostModel&) = default;
};

inline constexpr uint32_t kLeastChunkBytes = 4096;

/// How long chunks should be where `bytes` pass `n_levels` hops, one after the other, at `bytes_per_us`: the sum of
/// waiting and sending, (levels + chunks - 1) times (latency + chunk / rate), is least at sqrt(bytes * latency * rate /
/// (levels - 1)). Whole elements, from kLeastChunkBytes to limits.most_chunk_bytes (at least one element). Pure.
/// Thread-safe.
uint32_t chunk_bytes_for(const CostModel& model, uint32_t n_levels, uint64_t bytes, double bytes_per_us,
                         uint32_t element_bytes, const Limits& limits);

}  // namespace ringbolt::collective
