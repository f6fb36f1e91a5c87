#pragma once

#include <cstdint>
#include <vector>

#include "fabric/graph.h"

namespace ringbolt::fabric {

// Graphs with cables of capacity 1, sorted. All are pure and thread-safe; sizes below the least one are a bug.

Graph full_mesh(uint32_t n_nodes);  ///< every two nodes share a cable; n_nodes >= 1
Graph ring(uint32_t n_nodes);       ///< node k to k + 1, the last to the first; of 2 nodes two rails; n_nodes >= 2
Graph line(uint32_t n_nodes);       ///< a ring without its last cable; n_nodes >= 1
Graph star(uint32_t n_nodes);       ///< node 0 to every other; n_nodes >= 1

/// A ring along each of 2 or 3 dimensions; one cable, not two, along a side of 2. Node (i, j, k) is number
/// (i * sides[1] + j) * sides[2] + k. Sides are at least 1.
Graph torus(const std::vector<uint32_t>& sides);

/// 2^n_bits nodes, cabled where their numbers differ in one bit; n_bits <= 16.
Graph hypercube(uint32_t n_bits);

/// Node i to i + s for every offset s, modulo n_nodes. Offsets are different, from 1 to n_nodes / 2.
Graph circulant(uint32_t n_nodes, const std::vector<uint32_t>& offsets);

/// Chords of a ring: node i to i + offset, modulo n_nodes, for every i that is `residue` modulo `period`.
struct Chords {
  uint32_t residue = 0;
  int32_t offset = 0;
};
/// A ring and chords that repeat every `period` nodes (which divides n_nodes). A chord that is there is not doubled.
Graph periodic_chords(uint32_t n_nodes, uint32_t period, const std::vector<Chords>& chords);

/// 10 nodes with 3 ports each, any two at most 2 hops apart: the largest such graph (Petersen 1898).
Graph petersen();

/// Every node of the first `left` to every one of the `right` others.
Graph complete_bipartite(uint32_t left, uint32_t right);

}  // namespace ringbolt::fabric
