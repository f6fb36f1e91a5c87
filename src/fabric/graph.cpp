#include "fabric/graph.h"

#include <algorithm>
#include <tuple>

#include "base/assert.h"

namespace ringbolt::fabric {

// Cables have their lower node first, which is_joined() and merge_rails() go by.
void join(Graph& graph, uint32_t a, uint32_t b, const Fraction& capacity) {
  RINGBOLT_ASSERT(a != b && a < graph.n_nodes && b < graph.n_nodes && capacity > 0);
  graph.cables.push_back({std::min(a, b), std::max(a, b), capacity});
}

// Stable: rails of one pair keep their order, and with it their numbers.
void sort_cables(Graph& graph) {
  std::ranges::stable_sort(graph.cables, [](const Cable& left, const Cable& right) {
    return std::tie(left.a, left.b) < std::tie(right.a, right.b);
  });
}

Graph merge_rails(const Graph& graph) {
  Graph sorted = graph;
  sort_cables(sorted);
  Graph merged{graph.n_nodes};
  // Sorted, so that rails of one pair stand side by side.
  for (const Cable& cable : sorted.cables) {
    if (!merged.cables.empty() && merged.cables.back().a == cable.a && merged.cables.back().b == cable.b) {
      merged.cables.back().capacity += cable.capacity;
    } else {
      merged.cables.push_back(cable);
    }
  }
  return merged;
}

Graph without_cable(const Graph& graph, size_t index) {
  RINGBOLT_ASSERT(index < graph.cables.size());
  Graph rest = graph;
  rest.cables.erase(rest.cables.begin() + static_cast<std::ptrdiff_t>(index));
  return rest;
}

// Linear in the cables: for graphs of hundreds, while they are built.
bool is_joined(const Graph& graph, uint32_t a, uint32_t b) {
  return std::ranges::any_of(graph.cables, [low = std::min(a, b), high = std::max(a, b)](const Cable& cable) {
    return cable.a == low && cable.b == high;
  });
}

std::vector<std::vector<uint32_t>> neighbours(const Graph& graph) {
  std::vector<std::vector<uint32_t>> found(graph.n_nodes);
  for (const Cable& cable : graph.cables) {
    found[cable.a].push_back(cable.b);
    found[cable.b].push_back(cable.a);
  }
  for (std::vector<uint32_t>& list : found) {
    std::ranges::sort(list);
    // Rails count once: hops don't depend on how many there are.
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  return found;
}

std::vector<uint32_t> port_counts(const Graph& graph) {
  std::vector<uint32_t> counts(graph.n_nodes);
  for (const Cable& cable : graph.cables) {
    ++counts[cable.a];
    ++counts[cable.b];
  }
  return counts;
}

std::vector<Fraction> rates_of_nodes(const Graph& graph) {
  std::vector<Fraction> rates(graph.n_nodes);
  for (const Cable& cable : graph.cables) {
    rates[cable.a] += cable.capacity;
    rates[cable.b] += cable.capacity;
  }
  return rates;
}

namespace {

/// Hops from `start`, and the nodes in the order in which they are reached.
std::vector<uint32_t> reach(const std::vector<std::vector<uint32_t>>& neighbours, uint32_t start,
                            std::vector<uint32_t>& queue) {
  std::vector<uint32_t> hops(neighbours.size(), kUnreachable);
  queue = {start};
  hops[start] = 0;
  // Dense graphs are all reached long before every node's list has been gone through.
  for (size_t next = 0; next < queue.size() && queue.size() < neighbours.size(); ++next) {
    for (const uint32_t other : neighbours[queue[next]]) {
      if (hops[other] == kUnreachable) {
        hops[other] = hops[queue[next]] + 1;
        queue.push_back(other);
      }
    }
  }
  return hops;
}

}  // namespace

std::vector<uint32_t> hops_from(const std::vector<std::vector<uint32_t>>& neighbours, uint32_t start) {
  std::vector<uint32_t> order;
  return reach(neighbours, start, order);
}

std::vector<uint32_t> breadth_first(const std::vector<std::vector<uint32_t>>& neighbours, uint32_t start) {
  std::vector<uint32_t> order;
  reach(neighbours, start, order);
  return order;
}

// Ordered pairs, n (n - 1) of them, as `sum` counts each from both ends. Exact, so that all ranks compare alike.
Fraction Distances::aspl(uint32_t n_nodes) const {
  return n_nodes < 2 ? Fraction(0) : Fraction(sum) / (Fraction(n_nodes) * Fraction(n_nodes - 1));
}

Distances distances(const Graph& graph) {
  Distances result;
  result.is_connected = true;
  // Above every number of hops.
  result.radius = kUnreachable;
  const auto lists = neighbours(graph);
  for (uint32_t node = 0; node < graph.n_nodes; ++node) {
    uint32_t farthest = 0;
    for (const uint32_t hops : hops_from(lists, node)) {
      // `sum` and the radius then say nothing of the whole.
      if (hops == kUnreachable) {
        result.is_connected = false;
        continue;
      }
      farthest = std::max(farthest, hops);
      result.sum += hops;
    }
    result.diameter = std::max(result.diameter, farthest);
    // Strictly less, so that of equal centres the lowest counts, on all ranks alike.
    if (farthest < result.radius) {
      result.radius = farthest;
      result.centre = node;
    }
  }
  return result;
}

}  // namespace ringbolt::fabric
