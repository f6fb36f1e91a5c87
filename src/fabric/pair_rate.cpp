#include "fabric/bounds.h"

#include <algorithm>

#include "base/error.h"
#include "fabric/all_cuts.h"
#include "fabric/flow.h"

namespace ringbolt::fabric {
namespace {

Fraction ratio_of_cut(const Fraction& rate, uint32_t n_inside, uint32_t n_nodes) {
  // A cut carries what n_inside times the others send, one way.
  return rate / (Fraction(n_inside) * Fraction(n_nodes - n_inside));
}

Fraction least_of_all_cuts(const Graph& graph) {
  std::optional<Fraction> least;
  visit_all_cuts(graph, [&](const Fraction& rate, uint32_t n_inside) {
    const Fraction ratio = ratio_of_cut(rate, n_inside, graph.n_nodes);
    least = least ? std::min(*least, ratio) : ratio;
  });
  return *least;
}

/// The least ratio of the cuts that are shown to it, node by node.
class GrowingCut {
 public:
  explicit GrowingCut(const Graph& graph) : cables_(graph.n_nodes), rates_(rates_of_nodes(graph)) {
    for (const Cable& cable : graph.cables) {
      cables_[cable.a].emplace_back(cable.b, cable.capacity);
      cables_[cable.b].emplace_back(cable.a, cable.capacity);
    }
    least_ = ratio_of_cut(rates_.front(), 1, graph.n_nodes);
  }

  const Fraction& least() const { return least_; }

  /// From an empty set on.
  void begin() {
    is_inside_.assign(cables_.size(), false);
    rate_ = 0;
    size_ = 0;
  }
  /// Adds a node. `is_cut`: look at what leaves the set now.
  void add(uint32_t node, bool is_cut = true) {
    rate_ += rates_[node];
    for (const auto& [other, capacity] : cables_[node]) {
      if (is_inside_[other]) {
        // The cable counted for both of its nodes, and leaves the set no more.
        rate_ = rate_ - Fraction(2) * capacity;
      }
    }
    is_inside_[node] = true;
    ++size_;
    const auto n_nodes = static_cast<uint32_t>(cables_.size());
    if (is_cut && size_ < n_nodes) {
      least_ = std::min(least_, ratio_of_cut(rate_, size_, n_nodes));
    }
  }

 private:
  std::vector<std::vector<std::pair<uint32_t, Fraction>>> cables_;
  std::vector<Fraction> rates_;
  std::vector<bool> is_inside_;
  Fraction rate_;
  uint32_t size_ = 0;
  Fraction least_;
};

/// The sides of node 0 of the minimum cuts between it and every other.
void show_minimum_cuts(const Graph& graph, GrowingCut& cut) {
  FlowNetwork network = flow_network(graph, common_denominator(graph));
  for (uint32_t sink = 1; sink < graph.n_nodes; ++sink) {
    network.max_flow(0, sink);
    std::vector<uint32_t> side;
    for (uint32_t node = 0; node < graph.n_nodes; ++node) {
      if (network.is_on_source_side(node)) {
        side.push_back(node);
      }
    }
    cut.begin();
    for (const uint32_t node : side) {
      cut.add(node, node == side.back());
    }
  }
}

/// Of sets that are likely: single nodes, pairs that a cable joins, what lies near to a node, and minimum cuts.
Fraction least_of_likely_cuts(const Graph& graph) {
  const Graph merged = merge_rails(graph);
  GrowingCut cut(merged);
  for (const Cable& cable : merged.cables) {
    cut.begin();
    cut.add(cable.a);
    cut.add(cable.b);
  }
  const auto lists = neighbours(merged);
  for (uint32_t start = 0; start < merged.n_nodes; ++start) {
    cut.begin();
    for (const uint32_t node : breadth_first(lists, start)) {
      cut.add(node);
    }
  }
  show_minimum_cuts(merged, cut);
  return cut.least();
}

/// The most that any direction of a cable carries, over its capacity, if each ordered pair sends 1, equally over its
/// shortest paths. Number: Fraction or double.
template <class Number>
Number worst_load(const Graph& graph) {
  const Graph merged = merge_rails(graph);
  const auto lists = neighbours(merged);
  const uint32_t n = merged.n_nodes;
  std::vector<std::vector<uint32_t>> hops(n);
  std::vector<std::vector<Number>> n_paths(n, std::vector<Number>(n, Number(0)));
  for (uint32_t start = 0; start < n; ++start) {
    hops[start] = hops_from(lists, start);
    std::vector<uint32_t> order(n);
    for (uint32_t node = 0; node < n; ++node) {
      order[node] = node;
    }
    // Nearer nodes first, so that the number of paths to a node is known before it is passed on.
    std::ranges::sort(order, {}, [&](uint32_t node) { return hops[start][node]; });
    n_paths[start][start] = Number(1);
    for (const uint32_t node : order) {
      for (const uint32_t other : lists[node]) {
        if (hops[start][other] == hops[start][node] + 1) {
          n_paths[start][other] = n_paths[start][other] + n_paths[start][node];
        }
      }
    }
  }
  Number worst(0);
  for (const Cable& cable : merged.cables) {
    for (const auto& [from, to] : {std::pair(cable.a, cable.b), std::pair(cable.b, cable.a)}) {
      Number load(0);
      for (uint32_t source = 0; source < n; ++source) {
        for (uint32_t sink = 0; sink < n; ++sink) {
          // Unreachable ones add up to nothing that is a distance.
          if (hops[source][from] + 1 + hops[to][sink] == hops[source][sink]) {
            load = load + n_paths[source][from] * n_paths[to][sink] / n_paths[source][sink];
          }
        }
      }
      if constexpr (std::is_same_v<Number, double>) {
        load = load / cable.capacity.value();
      } else {
        load = load / cable.capacity;
      }
      worst = std::max(worst, load);
    }
  }
  return worst;
}

}  // namespace

PairRate pair_rate_bound(const Graph& graph) {
  Fraction total;
  for (const Cable& cable : graph.cables) {
    total += cable.capacity;
  }
  PairRate rate;
  rate.has_all_cuts = graph.n_nodes <= kMostNodesForAllCuts;
  rate.bound = std::min(rate.has_all_cuts ? least_of_all_cuts(graph) : least_of_likely_cuts(graph),
                        // Each byte uses as many directions of cables as it makes hops.
                        Fraction(2) * total / Fraction(distances(graph).sum));
  return rate;
}

SplitRate equal_split_rate(const Graph& graph) {
  try {
    const Fraction exact = Fraction(1) / worst_load<Fraction>(graph);
    return {exact.value(), exact};
  } catch (const base::Error&) {
    // Only EOVERFLOW comes here: numbers of paths grow exponentially on some graphs.
    return {1 / worst_load<double>(graph), std::nullopt};
  }
}

}  // namespace ringbolt::fabric
