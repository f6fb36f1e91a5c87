#include "fabric/bounds.h"

#include <algorithm>

#include "base/error.h"

namespace ringbolt::fabric {
namespace {

Fraction ratio_of_cut(const Fraction& rate, uint32_t n_inside, uint32_t n_nodes) {
  return rate / (Fraction(n_inside) * Fraction(n_nodes - n_inside));
}

/// The least ratio over all cuts, one node changing sides at a time (Gray's code). The last node stays outside.
Fraction least_of_all_cuts(const Graph& graph) {
  std::vector<std::vector<std::pair<uint32_t, Fraction>>> cables(graph.n_nodes);
  for (const Cable& cable : graph.cables) {
    cables[cable.a].emplace_back(cable.b, cable.capacity);
    cables[cable.b].emplace_back(cable.a, cable.capacity);
  }
  Fraction least = graph.cables.front().capacity * Fraction(graph.cables.size());
  Fraction rate;
  uint32_t inside = 0;
  for (uint32_t count = 1; count < 1U << (graph.n_nodes - 1); ++count) {
    const auto node = static_cast<uint32_t>(__builtin_ctz(count));
    const bool leaves = (inside >> node & 1U) != 0;
    inside ^= 1U << node;
    for (const auto& [other, capacity] : cables[node]) {
      const bool is_apart = ((inside >> other & 1U) != 0) == leaves;
      rate = is_apart ? rate + capacity : rate - capacity;
    }
    const auto size = static_cast<uint32_t>(__builtin_popcount(inside));
    const Fraction ratio = ratio_of_cut(rate, size, graph.n_nodes);
    least = count == 1 ? ratio : std::min(least, ratio);
  }
  return least;
}

/// Of single nodes, and of pairs that a cable joins.
Fraction least_of_small_cuts(const Graph& graph) {
  const std::vector<Fraction> rates = rates_of_nodes(graph);
  Fraction least = ratio_of_cut(std::ranges::min(rates), 1, graph.n_nodes);
  for (const Cable& cable : merge_rails(graph).cables) {
    if (graph.n_nodes > 2) {
      least = std::min(least,
                       ratio_of_cut(rates[cable.a] + rates[cable.b] - Fraction(2) * cable.capacity, 2, graph.n_nodes));
    }
  }
  return least;
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
  rate.bound = std::min(rate.has_all_cuts ? least_of_all_cuts(graph) : least_of_small_cuts(graph),
                        Fraction(2) * total / Fraction(distances(graph).sum));
  return rate;
}

SplitRate equal_split_rate(const Graph& graph) {
  try {
    const Fraction exact = Fraction(1) / worst_load<Fraction>(graph);
    return {exact.value(), exact};
  } catch (const base::Error&) {
    return {1 / worst_load<double>(graph), std::nullopt};
  }
}

}  // namespace ringbolt::fabric
