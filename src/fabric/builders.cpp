#include "fabric/builders.h"

#include <algorithm>

#include "base/assert.h"

namespace ringbolt::fabric {
namespace {

Graph sorted(Graph graph) {
  sort_cables(graph);
  return graph;
}

}  // namespace

Graph full_mesh(uint32_t n_nodes) {
  RINGBOLT_ASSERT(n_nodes >= 1);
  Graph graph{n_nodes};
  for (uint32_t a = 0; a < n_nodes; ++a) {
    for (uint32_t b = a + 1; b < n_nodes; ++b) {
      join(graph, a, b);
    }
  }
  return graph;
}

// Two nodes get two parallel cables.
Graph ring(uint32_t n_nodes) {
  RINGBOLT_ASSERT(n_nodes >= 2);
  Graph graph{n_nodes};
  for (uint32_t node = 0; node < n_nodes; ++node) {
    join(graph, node, (node + 1) % n_nodes);
  }
  return sorted(graph);
}

Graph line(uint32_t n_nodes) {
  RINGBOLT_ASSERT(n_nodes >= 1);
  Graph graph{n_nodes};
  for (uint32_t node = 1; node < n_nodes; ++node) {
    join(graph, node - 1, node);
  }
  return graph;
}

Graph star(uint32_t n_nodes) {
  RINGBOLT_ASSERT(n_nodes >= 1);
  Graph graph{n_nodes};
  for (uint32_t node = 1; node < n_nodes; ++node) {
    join(graph, 0, node);
  }
  return graph;
}

Graph torus(const std::vector<uint32_t>& sides) {
  RINGBOLT_ASSERT(sides.size() == 2 || sides.size() == 3);
  uint32_t n_nodes = 1;
  for (const uint32_t side : sides) {
    RINGBOLT_ASSERT(side >= 1);
    n_nodes *= side;
  }
  Graph graph{n_nodes};
  // A node's number counts its places in mixed base: the last side runs fastest.
  uint32_t stride = n_nodes;
  for (const uint32_t side : sides) {
    stride /= side;
    for (uint32_t node = 0; node < n_nodes; ++node) {
      const uint32_t at = node / stride % side;
      // The cable from the last back to the first of a side of 2 would double the one that is there.
      if (side > 1 && (side > 2 || at == 0)) {
        join(graph, node, node - at * stride + (at + 1) % side * stride);
      }
    }
  }
  return sorted(graph);
}

Graph hypercube(uint32_t n_bits) {
  // A bound on what is built: 65,536 nodes and half a million cables.
  RINGBOLT_ASSERT(n_bits <= 16);
  Graph graph{1U << n_bits};
  for (uint32_t node = 0; node < graph.n_nodes; ++node) {
    for (uint32_t bit = 0; bit < n_bits; ++bit) {
      if (const uint32_t other = node ^ (1U << bit); node < other) {
        join(graph, node, other);
      }
    }
  }
  return graph;
}

Graph circulant(uint32_t n_nodes, const std::vector<uint32_t>& offsets) {
  Graph graph{n_nodes};
  for (const uint32_t offset : offsets) {
    RINGBOLT_ASSERT(offset >= 1 && 2 * offset <= n_nodes && std::ranges::count(offsets, offset) == 1);
    // Half way round both ends name the same cable.
    const uint32_t n_starts = 2 * offset == n_nodes ? offset : n_nodes;
    for (uint32_t node = 0; node < n_starts; ++node) {
      join(graph, node, (node + offset) % n_nodes);
    }
  }
  return sorted(graph);
}

Graph periodic_chords(uint32_t n_nodes, uint32_t period, const std::vector<Chords>& chords) {
  RINGBOLT_ASSERT(period >= 1 && n_nodes % period == 0);
  Graph graph = ring(n_nodes);
  for (const Chords& one : chords) {
    const auto n = static_cast<int64_t>(n_nodes);
    for (uint32_t node = one.residue; node < n_nodes; node += period) {
      // The remainder of a negative number is negative.
      const auto other = static_cast<uint32_t>(((int64_t{node} + one.offset) % n + n) % n);
      // Two rules may name one chord, or one that is a cable of the ring: the graph has no rails.
      if (!is_joined(graph, node, other)) {
        join(graph, node, other);
      }
    }
  }
  return sorted(graph);
}

Graph petersen() {
  Graph graph{10};
  for (uint32_t node = 0; node < 5; ++node) {
    join(graph, node, (node + 1) % 5);          // the outer pentagon
    join(graph, node, node + 5);                // the spokes
    join(graph, node + 5, (node + 2) % 5 + 5);  // the inner pentagram
  }
  return sorted(graph);
}

Graph complete_bipartite(uint32_t left, uint32_t right) {
  Graph graph{left + right};
  for (uint32_t a = 0; a < left; ++a) {
    for (uint32_t b = left; b < left + right; ++b) {
      join(graph, a, b);
    }
  }
  return graph;
}

}  // namespace ringbolt::fabric
