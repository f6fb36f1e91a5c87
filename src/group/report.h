#pragma once

#include <cstdint>
#include <string>

#include "mesh/bring_up.h"

namespace ringbolt::group {

/// Which rank this is, of its group and of the mesh (the world).
struct Standing {
  uint32_t rank = 0;
  uint32_t n_ranks = 0;
  uint32_t world_rank = 0;
  uint32_t n_world_ranks = 0;
};

/// What the ranks found when they met, which ways there are to each rank of the mesh, and what the engine has counted.
/// For people: the form may change. Under the mesh's lock, by which the station's engine is guarded.
std::string report(const Standing& here, const mesh::BroughtUp& made);

}  // namespace ringbolt::group
