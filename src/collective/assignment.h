#pragma once

#include <cstdint>
#include <optional>

#include "collective/layout.h"
#include "collective/path_trees.h"
#include "collective/steps.h"
#include "collective/topology.h"

namespace ringbolt::collective {

/// What all ranks' parts of a schedule have in common and takes long to find: found by the first that is built.
/// One build at a time: not thread-safe.
struct CommonParts {
  std::optional<PathTrees> path_trees;
};

/// What a builder is asked for: the part of one rank. What two ranks must agree on (numbers of transfers, cuts, chunk
/// sizes) follows from the other members alone.
/// Views of what the caller of a builder has; made for one build.
struct Assignment {
  const Problem& problem;
  const Topology& topology;
  const Limits& limits;
  uint32_t rank;
  CommonParts& common;

  uint32_t n_ranks() const { return problem.n_ranks; }
  bool is_root() const { return rank == problem.root; }
  /// A step of `piece`, in chunks of `chunk_bytes`, without sources and targets.
  static Step step(const Piece& piece, uint32_t chunk_bytes) {
    Step step;
    step.bytes = piece.bytes;
    step.chunk_bytes = chunk_bytes;
    return step;
  }
  /// chunk_bytes_for() at the rate of the slowest cable.
  /// `n_levels`: hops one after the other; the same on all ranks, as what follows must be.
  uint32_t chunk_bytes(uint32_t n_levels, uint64_t bytes) const {
    return chunk_bytes_for(topology.model(), n_levels, bytes, topology.least_rate(), problem.element_bytes, limits);
  }
  /// To another rank over a shortest path.
  Target send_to(uint32_t peer, uint32_t transfer, uint64_t turn = 0) const {
    return to_transfer(peer, transfer, topology.path(rank, peer, turn));
  }
};

// The builders. See builder.cpp for what each fits.
Program build_exchange(const Assignment& assignment);
Program build_direct(const Assignment& assignment);
Program build_split(const Assignment& assignment);
Program build_direct_tree(const Assignment& assignment);
Program build_dissemination(const Assignment& assignment);
Program build_ring(const Assignment& assignment);
Program build_two_way_ring(const Assignment& assignment);
Program build_doubling(const Assignment& assignment);
Program build_halving(const Assignment& assignment);
Program build_chain(const Assignment& assignment);
Program build_path_trees(const Assignment& assignment);

}  // namespace ringbolt::collective
