#include "fabric/shape.h"

#include <algorithm>
#include <bit>
#include <optional>

#include <fmt/format.h>

#include "fabric/builders.h"
#include "fabric/catalogue.h"
#include "fabric/search.h"

namespace ringbolt::fabric {
namespace {

using base::Parsed;
using base::refuse;

/// Something to name if a rule of the table makes a classic.
std::string_view classic_name(uint32_t n_nodes, uint32_t n_ports) {
  if (n_ports != 3) {
    return "";
  }
  switch (n_nodes) {
    case 6:
      return "K3,3";
    case 8:
      return "Wagner graph";
    case 10:
      return "Petersen graph";
    case 14:
      return "Heawood graph";
    default:
      return "";
  }
}

/// The rule, unless it is a list that nobody reads.
std::string rule_text(const KnownGraph& known) {
  // About two lines of a terminal.
  constexpr size_t kMostBytes = 200;
  return known.rule.size() <= kMostBytes
             ? known.rule
             : fmt::format("a ring and {} chords", known.graph.cables.size() - known.graph.n_nodes);
}

/// Of 3 ports and more, and at least 2 nodes more than ports.
// Best first: the table of known graphs, then a search, then chance. All three give the same plan on every machine.
Shape sparse_shape(uint32_t n_nodes, uint32_t n_ports) {
  if (auto known = catalogued(n_nodes, n_ports)) {
    const std::string_view classic = classic_name(n_nodes, n_ports);
    return {classic.empty() ? std::string("table") : std::string(classic),
            fmt::format("from the table of known graphs: {}", rule_text(*known)), std::move(known->graph)};
  }
  if (n_nodes <= kMostSearchedNodes) {
    return {"searched", "found by annealing with a fixed seed: the same plan every time, not proven best",
            search_graph(n_nodes, n_ports)};
  }
  return {"random", "a random regular graph with a fixed seed: near to the best for so many nodes",
          random_regular(n_nodes, n_ports)};
}

/// What is laid beside the full mesh with `n_ports` < n_nodes - 1 ports.
Graph beside_mesh(uint32_t n_nodes, uint32_t n_ports) {
  Graph graph{n_nodes};
  // Pairs: a node is left over where their number is odd.
  if (n_ports == 1) {
    for (uint32_t node = 0; node + 1 < n_nodes; node += 2) {
      join(graph, node, node + 1);
    }
    return graph;
  }
  return n_ports == 2 ? ring(n_nodes) : sparse_shape(n_nodes, n_ports).graph;
}

// With n_nodes - 1 ports and more.
Shape mesh_with_rails(uint32_t n_nodes, uint32_t n_ports) {
  Shape shape{"mesh", "every two nodes share a cable: nothing is nearer", full_mesh(n_nodes)};
  const size_t n_pairs = shape.graph.cables.size();
  for (uint32_t rail = 1; rail < n_ports / (n_nodes - 1); ++rail) {
    for (size_t index = 0; index < n_pairs; ++index) {
      shape.graph.cables.push_back(shape.graph.cables[index]);
    }
  }
  if (const uint32_t left = n_ports % (n_nodes - 1); left > 0) {
    const Graph more = beside_mesh(n_nodes, left);
    shape.graph.cables.insert(shape.graph.cables.end(), more.cables.begin(), more.cables.end());
  }
  if (shape.graph.cables.size() > n_pairs) {
    shape.name = "mesh with rails";
    shape.origin += "; the ports left over carry further rails";
  }
  sort_cables(shape.graph);
  return shape;
}

// Bounds that all functions below rely on.
std::optional<tl::unexpected<base::ParseError>> objection(uint32_t n_nodes, uint32_t n_ports) {
  if (n_nodes < 2 || n_nodes > kMostPlannedNodes) {
    return refuse(0, fmt::format("{} node{}: a plan has from 2 to {} nodes", n_nodes, n_nodes == 1 ? "" : "s",
                                 kMostPlannedNodes));
  }
  if (n_ports < 1 || n_ports > kMostPlannedPorts) {
    return refuse(0, fmt::format("{} ports: a node has from 1 to {} ports", n_ports, kMostPlannedPorts));
  }
  if (n_ports == 1 && n_nodes > 2) {
    return refuse(0, fmt::format("{} nodes of 1 port cannot be joined: one port each is enough for 2 nodes; give 2 "
                                 "ports for a ring",
                                 n_nodes));
  }
  return std::nullopt;
}

// At least one entry, "" too: it gives one 0, which all callers refuse.
std::vector<uint32_t> numbers(std::string_view text, char separator) {
  std::vector<uint32_t> found;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(separator, at), text.size());
    uint32_t value = 0;
    for (const char c : text.substr(at, end - at)) {
      // Anything else becomes a number that nothing accepts; it stays below 2^32 thereby.
      value = c >= '0' && c <= '9' && value < 10'000 ? value * 10 + static_cast<uint32_t>(c - '0') : 1'000'000;
    }
    found.push_back(value);
    at = end + 1;
  }
  return found;
}

Parsed<Graph> parse_torus(std::string_view sizes, uint32_t n_nodes) {
  std::vector<uint32_t> sides = numbers(sizes, 'x');
  if (sizes.empty()) {  // as square as can be
    uint32_t side = 1;
    // The largest divisor up to the root. n_nodes is bounded by objection(): the product can't wrap.
    for (uint32_t one = 1; one * one <= n_nodes; ++one) {
      side = n_nodes % one == 0 ? one : side;
    }
    sides = {side, n_nodes / side};
  }
  uint64_t product = 1;
  for (const uint32_t side : sides) {
    // Bounded, so that three sides can't wrap: beyond any number of nodes it is wrong anyhow.
    product = std::min(product * side, uint64_t{1'000'000});
  }
  if (sides.size() < 2 || sides.size() > 3 || product != n_nodes || std::ranges::min(sides) < 2) {
    return refuse(0,
                  fmt::format("a torus of {} nodes has two or three sides of at least 2 whose product that is, as in "
                              "torus:3x3 for 9",
                              n_nodes));
  }
  return torus(sides);
}

Parsed<Graph> parse_offsets(std::string_view text, uint32_t n_nodes) {
  std::vector<uint32_t> offsets = numbers(text, ',');
  std::ranges::sort(offsets);
  // An offset and n minus it are the same chord.
  if (offsets.front() < 1 || offsets.back() > n_nodes / 2 || std::ranges::adjacent_find(offsets) != offsets.end()) {
    return refuse(0, fmt::format("circulant:S,S,... has different offsets from 1 to {}", n_nodes / 2));
  }
  return circulant(n_nodes, offsets);
}

Parsed<Graph> build_named(std::string_view word, std::string_view sizes, uint32_t n_nodes, uint32_t n_ports) {
  if (word == "torus") {
    return parse_torus(sizes, n_nodes);
  }
  if (word == "circulant") {
    return parse_offsets(sizes, n_nodes);
  }
  if (!sizes.empty()) {
    return refuse(0, fmt::format("{} takes no numbers: --nodes says how many", word));
  }
  if (word == "mesh") {
    return full_mesh(n_nodes);
  }
  if (word == "ring") {
    return ring(n_nodes);
  }
  if (word == "line") {
    return line(n_nodes);
  }
  if (word == "star") {
    return star(n_nodes);
  }
  if (word == "hypercube" && std::has_single_bit(n_nodes)) {
    return hypercube(static_cast<uint32_t>(std::countr_zero(n_nodes)));
  }
  if (word == "hypercube") {
    return refuse(0, fmt::format("a hypercube has a power of 2 of nodes, as {} or {}", std::bit_floor(n_nodes),
                                 std::bit_ceil(n_nodes)));
  }
  if (word == "petersen") {
    return n_nodes == 10 ? Parsed<Graph>(petersen()) : refuse(0, "Petersen's graph has 10 nodes");
  }
  if (word == "random") {
    return n_ports >= 3 && n_nodes > n_ports
               ? Parsed<Graph>(random_regular(n_nodes, n_ports))
               : refuse(0, "a random graph takes 3 ports at least, and more nodes than ports");
  }
  return refuse(0, fmt::format("\"{}\" is no shape; known are {}", word, known_shapes()));
}

}  // namespace

Parsed<Shape> best_shape(uint32_t n_nodes, uint32_t n_ports) {
  if (auto objected = objection(n_nodes, n_ports)) {
    return *objected;
  }
  // From two nodes on: objection() has refused fewer, so that nothing wraps.
  if (n_ports >= n_nodes - 1) {
    return mesh_with_rails(n_nodes, n_ports);
  }
  if (n_ports == 2) {
    return Shape{"ring", "two ports each, all used: no other graph of two ports is nearer", ring(n_nodes)};
  }
  return sparse_shape(n_nodes, n_ports);
}

Parsed<Shape> named_shape(std::string_view text, uint32_t n_nodes, uint32_t n_ports) {
  // One port is enough for a line of two, which is looked at below.
  if (auto objected = objection(n_nodes, std::max(n_ports, 2U))) {
    return *objected;
  }
  const size_t colon = text.find(':');
  const std::string_view sizes = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  Parsed<Graph> graph = build_named(text.substr(0, colon), sizes, n_nodes, n_ports);
  if (!graph) {
    return tl::unexpected<base::ParseError>(graph.error());
  }
  // A circulant whose offsets share a divisor with n_nodes falls apart.
  if (!distances(*graph).is_connected) {
    return refuse(0, fmt::format("{} does not join all {} nodes", text, n_nodes));
  }
  if (const uint32_t needed = std::ranges::max(port_counts(*graph)); needed > n_ports) {
    return refuse(
        0, fmt::format("{} of {} nodes needs {} ports on a node, but there are {}", text, n_nodes, needed, n_ports));
  }
  return Shape{std::string(text), "as asked for by --shape", std::move(*graph)};
}

std::string known_shapes() {
  return "mesh, ring, line, star, torus, torus:AxB, torus:AxBxC, hypercube, petersen, circulant:S,S,..., random";
}

}  // namespace ringbolt::fabric
