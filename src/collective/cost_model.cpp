#include "collective/cost_model.h"

#include <algorithm>
#include <cmath>

#include "base/assert.h"

namespace ringbolt::collective {

uint32_t chunk_bytes_for(const CostModel& model, uint32_t n_levels, uint64_t bytes, double bytes_per_us,
                         uint32_t element_bytes, const Limits& limits) {
  RINGBOLT_ASSERT(element_bytes > 0 && element_bytes <= limits.most_chunk_bytes);
  const double most = limits.most_chunk_bytes;
  const double per_chunk_us = model.latency_us + model.chunk_us;
  // Of one level nothing waits for the end of a chunk: the longer the better.
  const double best =
      n_levels <= 1
          ? most
          : std::sqrt(static_cast<double>(bytes) * per_chunk_us * bytes_per_us / static_cast<double>(n_levels - 1));
  // In floating point, on all ranks alike as long as these compute IEEE 754 double: sqrt is rounded correctly there.
  const double clamped = std::clamp(best, std::min<double>(kLeastChunkBytes, most), most);
  constexpr uint32_t kGrain = 256;  // so that chunks begin on cache lines if their buffer does
  const uint32_t grain = kGrain % element_bytes == 0 && clamped >= kGrain ? kGrain : element_bytes;
  return std::max(element_bytes, static_cast<uint32_t>(clamped) / grain * grain);
}

}  // namespace ringbolt::collective
