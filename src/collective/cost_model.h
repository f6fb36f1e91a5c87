#pragma once

#include <cstdint>

#include "collective/problem.h"
#include "fabric/cost_model.h"

namespace ringbolt::collective {

using fabric::CostModel;

inline constexpr uint32_t kLeastChunkBytes = 4096;

/// How long chunks should be where `bytes` pass `n_levels` hops, one after the other, at `bytes_per_us`: the sum of
/// waiting and sending, (levels + chunks - 1) times (latency + chunk / rate), is least at sqrt(bytes * latency * rate /
/// (levels - 1)). Whole elements, from kLeastChunkBytes to limits.most_chunk_bytes (at least one element). Pure.
/// Thread-safe.
uint32_t chunk_bytes_for(const CostModel& model, uint32_t n_levels, uint64_t bytes, double bytes_per_us,
                         uint32_t element_bytes, const Limits& limits);

}  // namespace ringbolt::collective
