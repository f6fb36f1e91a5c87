#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/parsed.h"
#include "fabric/graph.h"

namespace ringbolt::fabric {

/// A known cabling and the rule that makes it.
struct KnownGraph {
  Graph graph;
  std::string rule;  ///< as in the table
};

/// The best cabling known of `n_nodes` with up to `n_ports` ports each, if the table has one. Not for full meshes and
/// rings, which need no table. Pure. Thread-safe.
std::optional<KnownGraph> catalogued(uint32_t n_nodes, uint32_t n_ports);

/// Builds the graph of a rule:
///   C(S)             circulant: cables i to i + s modulo n_nodes, for every s of the list S
///   Pp r:+s r:-s ..  ring, and i to i + s (i - s) for every i that is r modulo p
///   PETERSEN         Petersen's graph
/// and after the first word any of `a-b`, which adds a cable, `minus`, after which cables are taken away, and `plus`. A
/// chord that is there already is refused. Any bytes are safe to pass. Pure. Thread-safe.
base::Parsed<Graph> parse_rule(uint32_t n_nodes, std::string_view rule);

}  // namespace ringbolt::fabric
