#include "fabric/bounds.h"

#include <algorithm>
#include <numeric>

#include "base/assert.h"
#include "fabric/flow.h"

namespace ringbolt::fabric {
namespace {

/// The rate that leaves the set of nodes.
Fraction rate_out_of(const Graph& graph, const std::vector<bool>& is_inside) {
  Fraction rate;
  for (const Cable& cable : graph.cables) {
    if (is_inside[cable.a] != is_inside[cable.b]) {
      rate += cable.capacity;
    }
  }
  return rate;
}

/// Whether the nodes can all send shards of rate x to all: if not, the least ratio that the cuts found show.
std::optional<Fraction> tighter_shard_rate(const Graph& graph, const Fraction& x, int64_t common) {
  // Makes cables and x whole at the same time.
  const int64_t scale = checked_product(common, x.denominator());
  FlowNetwork network = flow_network(graph, scale, 1);
  const uint32_t source = graph.n_nodes;
  const int64_t shard = scaled(x, scale);
  for (uint32_t node = 0; node < graph.n_nodes; ++node) {
    network.add_arc(source, node, shard);
  }
  std::optional<Fraction> least;
  for (uint32_t sink = 0; sink < graph.n_nodes; ++sink) {
    // Then each node's shard reaches the sink, and no set that leaves out the sink is too tight.
    if (network.max_flow(source, sink) == checked_product(shard, graph.n_nodes)) {
      continue;
    }
    std::vector<bool> is_inside(graph.n_nodes);
    int64_t size = 0;
    for (uint32_t node = 0; node < graph.n_nodes; ++node) {
      is_inside[node] = network.is_on_source_side(node);
      size += is_inside[node] ? 1 : 0;
    }
    // Of the set on the source's side of a minimum cut, which is smaller than x.
    const Fraction ratio = rate_out_of(graph, is_inside) / Fraction(size);
    least = least ? std::min(*least, ratio) : ratio;
  }
  return least;
}

/// The greedy algorithm of tree_rate() for one t. f(S) = c(S, V \ S) / 2 - t is submodular on sets that meet; x is the
/// greatest vector below it, node by node, and the sets that bound x make the partition.
class Partition {
 public:
  Partition(const Graph& graph, const Fraction& t, int64_t common)
      : graph_(graph), scale_(checked_product(checked_product(2, common), t.denominator())), t_(scaled(t, scale_)) {
    part_.resize(graph.n_nodes);
    std::iota(part_.begin(), part_.end(), 0U);
    for (uint32_t node = 0; node < graph.n_nodes; ++node) {
      add(node);
    }
  }

  uint32_t n_parts() const {
    std::vector<uint32_t> names = part_;
    std::ranges::sort(names);
    return static_cast<uint32_t>(std::unique(names.begin(), names.end()) - names.begin());
  }

  /// The rate between parts over their number less one.
  Fraction ratio() const {
    Fraction between;
    for (const Cable& cable : graph_.cables) {
      if (part_[cable.a] != part_[cable.b]) {
        between += cable.capacity;
      }
    }
    return between / Fraction(n_parts() - 1);
  }

 private:
  /// x of the next node: one minimum cut between it and all later nodes.
  void add(uint32_t node) {
    FlowNetwork network(node + 2);
    const uint32_t later = node + 1;
    for (const Cable& cable : graph_.cables) {
      const uint32_t a = std::min(cable.a, later);
      const uint32_t b = std::min(cable.b, later);
      if (a != b) {
        // Whole, for scale_ has a factor of 2.
        const int64_t half = scaled(cable.capacity, scale_) / 2;
        network.add_arc(a, b, half, half);
      }
    }
    int64_t gain = 0;
    for (uint32_t other = 0; other < node; ++other) {
      // Arcs have no negative capacities: what a node lacks is put on the other side of the cut.
      if (x_[other] >= 0) {
        gain += x_[other];
        network.add_arc(node, other, x_[other]);
      } else {
        network.add_arc(other, later, -x_[other]);
      }
    }
    x_.push_back(network.max_flow(node, later) - gain - t_);
    // The minimiser, and every part that it meets, are one part now.
    std::vector<bool> is_met(graph_.n_nodes);
    for (uint32_t other = 0; other <= node; ++other) {
      if (network.is_on_source_side(other)) {
        is_met[part_[other]] = true;
      }
    }
    for (uint32_t other = 0; other <= node; ++other) {
      if (is_met[part_[other]]) {
        part_[other] = node;
      }
    }
  }

  const Graph& graph_;
  int64_t scale_;  ///< makes half of a cable and t whole
  int64_t t_;
  std::vector<int64_t> x_;
  std::vector<uint32_t> part_;  ///< of every node; named after one of its nodes
};

}  // namespace

Fraction rate_from(const Graph& graph, uint32_t root) {
  RINGBOLT_ASSERT(graph.n_nodes >= 2 && root < graph.n_nodes);
  const int64_t scale = common_denominator(graph);
  FlowNetwork network = flow_network(graph, scale);
  int64_t least = INT64_MAX;
  for (uint32_t node = 0; node < graph.n_nodes; ++node) {
    if (node != root) {
      least = std::min(least, network.max_flow(root, node));
    }
  }
  return {least, scale};
}

Fraction edge_connectivity(const Graph& graph) { return rate_from(graph, 0); }  // each cut has node 0 on a side

Fraction shard_rate(const Graph& graph) {
  RINGBOLT_ASSERT(graph.n_nodes >= 2);
  const int64_t common = common_denominator(graph);
  // The sets of all nodes but one, as a beginning that is never too low.
  Fraction x = std::ranges::min(rates_of_nodes(graph)) / Fraction(graph.n_nodes - 1);
  while (const std::optional<Fraction> tighter = tighter_shard_rate(graph, x, common)) {
    // Newton's method on ratios (Dinkelbach 1967): it falls strictly, through ratios of cuts, of which there are
    // finitely many.
    RINGBOLT_ASSERT(*tighter < x);
    x = *tighter;
  }
  return x;
}

Fraction tree_rate(const Graph& graph) {
  RINGBOLT_ASSERT(graph.n_nodes >= 2);
  const int64_t common = common_denominator(graph);
  Fraction total;
  for (const Cable& cable : graph.cables) {
    total += cable.capacity;
  }
  // Dinkelbach 1967: the partition that is best for this t gives the next one. Every node a part of its own.
  for (Fraction t = total / Fraction(graph.n_nodes - 1);;) {
    const Partition partition(graph, t, common);
    if (partition.n_parts() == 1) {
      return t;
    }
    const Fraction ratio = partition.ratio();
    // Equal, unless rounding crept in, of which there is none.
    if (ratio >= t) {
      return t;
    }
    t = ratio;
  }
}

uint32_t least_steps(const Graph& graph) {
  // After each step as many more know as the ones who know have ports.
  const uint64_t wider = uint64_t{std::ranges::max(port_counts(graph))} + 1;
  uint32_t steps = 0;
  for (uint64_t reached = 1; reached < graph.n_nodes; reached *= wider) {
    ++steps;
  }
  return std::max(steps, distances(graph).diameter);
}

}  // namespace ringbolt::fabric
