#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace ringbolt::collective {

/// A cycle through all nodes along edges, beginning with node 0: 0, 1, 2 ... if that is one, else what a search of
/// bounded length finds (depth first, the neighbour with the fewest free neighbours first: Warnsdorff 1823; up to 64
/// nodes). It may miss one. `neighbours` is fabric::neighbours(). None below 3 nodes. Pure. Thread-safe.
std::optional<std::vector<uint32_t>> find_ring(const std::vector<std::vector<uint32_t>>& neighbours);

}  // namespace ringbolt::collective
