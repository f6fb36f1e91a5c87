#include "fabric/bisection.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "fabric/all_cuts.h"
#include "fabric/flow.h"

namespace ringbolt::fabric {
namespace {

/// Two halves that nodes change between, two at a time. Capacities are whole: times a common denominator.
class Halves {
 public:
  Halves(const Graph& graph, int64_t scale)
      : lists_(neighbours(graph)), capacities_(graph.n_nodes, std::vector<int64_t>(graph.n_nodes)) {
    for (const Cable& cable : graph.cables) {
      // Rails add up.
      capacities_[cable.a][cable.b] += scaled(cable.capacity, scale);
      capacities_[cable.b][cable.a] = capacities_[cable.a][cable.b];
    }
  }

  /// The `size` nodes that are nearest to `start`, and the others.
  void begin(uint32_t start, uint32_t size) {
    is_inside_.assign(lists_.size(), false);
    std::vector<uint32_t> order = breadth_first(lists_, start);
    for (uint32_t node = 0; node < lists_.size(); ++node) {
      if (std::ranges::find(order, node) == order.end()) {
        order.push_back(node);  // of another part
      }
    }
    for (size_t i = 0; i < size; ++i) {
      is_inside_[order[i]] = true;
    }
  }

  /// Swaps each node once, the best two at a time even where that costs, and goes back to the best halves on the way.
  /// What they have less between them than before.
  int64_t improve() {
    std::vector<int64_t> gains(lists_.size());
    for (uint32_t node = 0; node < lists_.size(); ++node) {
      for (const uint32_t other : lists_[node]) {
        // What the cut has less if the node alone changes sides.
        gains[node] += is_inside_[node] == is_inside_[other] ? -capacities_[node][other] : capacities_[node][other];
      }
    }
    std::vector<Swap> swaps;
    is_swapped_.assign(lists_.size(), false);
    int64_t gained = 0;
    int64_t best = 0;
    size_t n_best = 0;
    // Ends when one side has been swapped as a whole: n^3 / 8 looks for n nodes.
    while (const std::optional<Swap> swap = best_swap(gains)) {
      gained += swap->gain;
      for (const uint32_t node : {swap->in, swap->out}) {
        is_swapped_[node] = true;
        is_inside_[node] = !is_inside_[node];
        for (const uint32_t other : lists_[node]) {
          // A cable of its was gained before and costs now, or the other way round.
          const int64_t twice = 2 * capacities_[node][other];
          gains[other] += is_inside_[node] == is_inside_[other] ? -twice : twice;
        }
      }
      swaps.push_back(*swap);
      if (gained > best) {
        best = gained;
        n_best = swaps.size();
      }
    }
    for (size_t i = n_best; i < swaps.size(); ++i) {
      is_inside_[swaps[i].in] = true;
      is_inside_[swaps[i].out] = false;
    }
    return best;
  }

  int64_t rate() const {
    int64_t rate = 0;
    for (uint32_t node = 0; node < lists_.size(); ++node) {
      for (const uint32_t other : lists_[node]) {
        rate += is_inside_[node] && !is_inside_[other] ? capacities_[node][other] : 0;
      }
    }
    return rate;
  }

 private:
  /// `in` was inside before.
  struct Swap {
    uint32_t in;
    uint32_t out;
    int64_t gain;
  };

  std::optional<Swap> best_swap(const std::vector<int64_t>& gains) const {
    std::optional<Swap> best;
    for (uint32_t in = 0; in < lists_.size(); ++in) {
      if (!is_inside_[in] || is_swapped_[in]) {
        continue;
      }
      for (uint32_t out = 0; out < lists_.size(); ++out) {
        if (is_inside_[out] || is_swapped_[out]) {
          continue;
        }
        // The cable between the two is cut before and after, and both gains count it.
        const int64_t gain = gains[in] + gains[out] - 2 * capacities_[in][out];
        if (!best || gain > best->gain) {
          best = {in, out, gain};
        }
      }
    }
    return best;
  }

  std::vector<std::vector<uint32_t>> lists_;
  std::vector<std::vector<int64_t>> capacities_;  // [node][node]
  std::vector<bool> is_inside_;
  std::vector<bool> is_swapped_;
};

}  // namespace

Fraction bisection_by_swaps(const Graph& graph) {
  const int64_t scale = common_denominator(graph);
  Halves halves(graph, scale);
  std::optional<int64_t> least;
  for (uint32_t start = 0; start < graph.n_nodes; ++start) {
    // Once, or twice where the number of nodes is odd.
    for (uint32_t size = graph.n_nodes / 2; size <= graph.n_nodes - graph.n_nodes / 2; ++size) {
      halves.begin(start, size);
      // Ends: each round lessens a whole number that is not negative.
      while (halves.improve() > 0) {
      }
      least = least ? std::min(*least, halves.rate()) : halves.rate();
    }
  }
  return Fraction(*least, scale);
}

Bisection bisection(const Graph& graph) {
  if (graph.n_nodes > kMostNodesForAllCuts) {
    return {bisection_by_swaps(graph), false};
  }
  std::optional<Fraction> least;
  visit_all_cuts(graph, [&](const Fraction& rate, uint32_t n_inside) {
    // visit_all_cuts() shows each cut from one side only.
    if (n_inside == graph.n_nodes / 2 || n_inside == graph.n_nodes - graph.n_nodes / 2) {
      least = least ? std::min(*least, rate) : rate;
    }
  });
  return {*least, true};
}

}  // namespace ringbolt::fabric
