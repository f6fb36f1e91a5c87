#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/parsed.h"
#include "fabric/graph.h"

namespace ringbolt::fabric {

inline constexpr uint32_t kMostPlannedNodes = 250;
inline constexpr uint32_t kMostPlannedPorts = 250;

/// A cabling and where it comes from.
struct Shape {
  std::string name;    ///< "ring", "Petersen", "mesh and 2 rails"
  std::string origin;  ///< a sentence: how it was found and what is known of it
  Graph graph;
};

/// The best cabling known for so many nodes of so many ports: a full mesh while there are ports for it (what is left
/// over becomes further rails), a ring of two ports, else the least diameter and then the least average path: from the
/// table, searched for up to 64 nodes (seconds), random above. Refuses, saying what would do: fewer than 2 nodes, no
/// ports, more than one can plan, one port for more than 2 nodes. Pure. Thread-safe.
base::Parsed<Shape> best_shape(uint32_t n_nodes, uint32_t n_ports);

/// The cabling that `text` names, for so many nodes: mesh, ring, line, star, torus (as square as can be), torus:AxB,
/// torus:AxBxC, hypercube, petersen, circulant:S,S,..., random. Refuses what needs more ports than there are, or other
/// numbers of nodes, and says what would do. Any bytes are safe to pass. Pure. Thread-safe.
base::Parsed<Shape> named_shape(std::string_view text, uint32_t n_nodes, uint32_t n_ports);

/// "mesh, ring, ...": for messages and help.
std::string known_shapes();

}  // namespace ringbolt::fabric
