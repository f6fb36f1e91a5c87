#include "fabric/search.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "fabric/moore_bound.h"

namespace ringbolt::fabric {
namespace {

using Pair = std::pair<uint32_t, uint32_t>;

/// Whole numbers from a seed, the same with every standard library (whose distributions differ).
class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}
  // The upper half of a product of 32 bits (Lemire 2019), with a bias too small to matter. `limit` is not 0.
  uint32_t below(uint32_t limit) { return static_cast<uint32_t>((engine_() >> 32U) * limit >> 32U); }
  // 53 bits: from 0 up to, and without, 1.
  double unit() { return static_cast<double>(engine_() >> 11U) * 0x1p-53; }

 private:
  std::mt19937_64 engine_;
};

/// Cables as pairs of nodes, with a matrix to ask for one.
class Wiring {
 public:
  explicit Wiring(uint32_t n_nodes) : n_nodes_(n_nodes), joined_(size_t{n_nodes} * n_nodes) {}

  bool has(uint32_t a, uint32_t b) const { return joined_[size_t{a} * n_nodes_ + b] != 0; }
  void add(uint32_t a, uint32_t b) {
    cables_.emplace_back(a, b);
    mark(a, b, 1);
  }
  /// Plugs cable `index` into other ports.
  void move(size_t index, uint32_t a, uint32_t b) {
    mark(cables_[index].first, cables_[index].second, 0);
    cables_[index] = {a, b};
    mark(a, b, 1);
  }
  const std::vector<Pair>& cables() const { return cables_; }

  Graph graph() const {
    Graph graph{n_nodes_};
    for (const auto& [a, b] : cables_) {
      join(graph, a, b);
    }
    sort_cables(graph);
    return graph;
  }

 private:
  void mark(uint32_t a, uint32_t b, uint8_t value) {
    joined_[size_t{a} * n_nodes_ + b] = value;
    joined_[size_t{b} * n_nodes_ + a] = value;
  }

  uint32_t n_nodes_;
  std::vector<uint8_t> joined_;
  std::vector<Pair> cables_;
};

/// Joins random free ports, `n_ports` of each node; where those left cannot be joined, opens a cable that both nodes
/// lack. Nothing if no such cable turned up: one try in `patience` is the last. The sum of all ports is even.
std::optional<Wiring> try_pairing(const std::vector<uint32_t>& n_ports, uint32_t patience, Dice& dice) {
  Wiring wiring(static_cast<uint32_t>(n_ports.size()));
  std::vector<uint32_t> free;
  for (uint32_t node = 0; node < n_ports.size(); ++node) {
    free.insert(free.end(), n_ports[node], node);
  }
  // Order among free ports does not matter.
  const auto take = [&](size_t index) {
    const uint32_t node = free[index];
    free[index] = free.back();
    free.pop_back();
    return node;
  };
  while (free.size() >= 2) {
    const uint32_t a = take(dice.below(static_cast<uint32_t>(free.size())));
    const uint32_t b = take(dice.below(static_cast<uint32_t>(free.size())));
    if (a != b && !wiring.has(a, b)) {
      wiring.add(a, b);
      continue;
    }
    for (;;) {  // ends: of a sparse graph nearly every cable is as good, and else the dice say stop
      if (wiring.cables().empty() || dice.below(patience) == 0) {
        return std::nullopt;
      }
      const size_t index = dice.below(static_cast<uint32_t>(wiring.cables().size()));
      const auto [c, d] = wiring.cables()[index];
      if (c != a && c != b && d != a && d != b && !wiring.has(a, c) && !wiring.has(b, d)) {
        wiring.move(index, a, c);
        wiring.add(b, d);
        break;
      }
    }
  }
  return wiring;
}

/// A cable wherever `wiring` has none.
Wiring complement(const Wiring& wiring, uint32_t n_nodes) {
  Wiring other(n_nodes);
  for (uint32_t a = 0; a < n_nodes; ++a) {
    for (uint32_t b = a + 1; b < n_nodes; ++b) {
      if (!wiring.has(a, b)) {
        other.add(a, b);
      }
    }
  }
  return other;
}

/// `n_ports` random cables at every node, one less at the last if the sum would be odd. Of a dense graph it is the
/// cables that are missing which are laid at random: there is hardly a place for the last of those that are there.
Wiring pair_ports(uint32_t n_nodes, uint32_t n_ports, Dice& dice) {
  // Of the smallest graphs, where nothing may fit, one attempt in two succeeds. Those with ports for half of the nodes
  // have thousands of cables to open, and take patience.
  constexpr uint32_t kMostAttempts = 1000;
  constexpr uint32_t kPatience = 1000;
  constexpr uint32_t kMostDoublings = 10;
  const bool is_dense = n_ports > (n_nodes - 1) / 2;
  std::vector<uint32_t> laid(n_nodes, is_dense ? n_nodes - 1 - n_ports : n_ports);
  if (n_nodes * n_ports % 2 == 1) {
    laid.back() = is_dense ? laid.back() + 1 : laid.back() - 1;
  }
  std::optional<Wiring> wiring;
  for (uint32_t attempt = 0; attempt < kMostAttempts && !wiring; ++attempt) {
    wiring = try_pairing(laid, kPatience << std::min(attempt, kMostDoublings), dice);
  }
  RINGBOLT_ASSERT(wiring.has_value());
  return is_dense ? complement(*wiring, n_nodes) : *wiring;
}

/// The sum that is annealed: hops over all ordered pairs, and a price for every level beyond the bound.
class Cost {
 public:
  Cost(uint32_t n_nodes, uint32_t n_ports) : n_nodes_(n_nodes), bound_(moore_bound(n_nodes, n_ports)) {}

  uint64_t bound() const { return bound_.sum; }

  /// Works on sets of nodes as bits: the nodes within k + 1 hops of a node are those within k hops of its neighbours.
  uint64_t of(const Wiring& wiring) const {
    std::array<uint64_t, kMostSearchedNodes> beside{};
    std::array<uint64_t, kMostSearchedNodes> near{};
    for (uint32_t node = 0; node < n_nodes_; ++node) {
      near[node] = uint64_t{1} << node;
    }
    for (const auto& [a, b] : wiring.cables()) {
      beside[a] |= uint64_t{1} << b;
      beside[b] |= uint64_t{1} << a;
    }
    uint64_t sum = 0;
    uint32_t level = 0;
    for (uint64_t missing = uint64_t{n_nodes_} * (n_nodes_ - 1); missing > 0;) {
      sum += missing;  // each pair counts once for every level that does not join it
      ++level;
      std::array<uint64_t, kMostSearchedNodes> wider{};
      uint64_t found = 0;
      for (uint32_t node = 0; node < n_nodes_; ++node) {
        wider[node] = near[node];
        for (uint64_t others = beside[node]; others != 0; others &= others - 1) {
          wider[node] |= near[static_cast<size_t>(std::countr_zero(others))];
        }
        found += static_cast<uint64_t>(std::popcount(wider[node]) - std::popcount(near[node]));
      }
      if (found == 0) {
        return sum + missing * n_nodes_;  // not connected: worse than any that is
      }
      missing -= found;
      near = wider;
    }
    // More than any gain of average that a longer diameter could bring on the way.
    return sum + (level > bound_.diameter ? uint64_t{2} * n_nodes_ * (level - bound_.diameter) : 0);
  }

 private:
  uint32_t n_nodes_;
  MooreBound bound_;
};

struct Found {
  Wiring wiring;
  uint64_t cost;
};

Found anneal(Wiring wiring, const Cost& cost, uint32_t n_steps, Dice& dice) {
  // Hops of all pairs: at first a change for the worse by 8 is taken in one of three, at the end by 0.3.
  constexpr double kHot = 8;
  constexpr double kCold = 0.3;
  uint64_t now = cost.of(wiring);
  Found best{wiring, now};
  double temperature = kHot;
  const double cooling = std::pow(kCold / kHot, 1.0 / n_steps);
  const auto n_cables = static_cast<uint32_t>(wiring.cables().size());
  for (uint32_t step = 0; step < n_steps && best.cost > cost.bound(); ++step, temperature *= cooling) {
    const size_t one = dice.below(n_cables);
    const size_t two = dice.below(n_cables);
    const auto [a, b] = wiring.cables()[one];
    // Either way round, so that both exchanges of two cables can come about.
    const auto [c, d] =
        dice.below(2) == 0 ? wiring.cables()[two] : Pair{wiring.cables()[two].second, wiring.cables()[two].first};
    if (a == c || a == d || b == c || b == d || wiring.has(a, c) || wiring.has(b, d)) {
      continue;
    }
    wiring.move(one, a, c);
    wiring.move(two, b, d);
    const uint64_t then = cost.of(wiring);
    if (then <= now || dice.unit() < std::exp(-static_cast<double>(then - now) / temperature)) {
      now = then;
      if (now < best.cost) {
        best = {wiring, now};
      }
    } else {
      wiring.move(one, a, b);
      wiring.move(two, c, d);
    }
  }
  return best;
}

}  // namespace

Graph search_graph(uint32_t n_nodes, uint32_t n_ports, const SearchEffort& effort) {
  RINGBOLT_ASSERT(n_ports >= 3 && n_nodes >= n_ports + 2 && n_nodes <= kMostSearchedNodes);
  Dice dice(effort.seed);
  const Cost cost(n_nodes, n_ports);
  Found best = anneal(pair_ports(n_nodes, n_ports, dice), cost, effort.n_steps, dice);
  for (uint32_t attempt = 1; attempt < effort.n_attempts && best.cost > cost.bound(); ++attempt) {
    Found other = anneal(pair_ports(n_nodes, n_ports, dice), cost, effort.n_steps, dice);
    if (other.cost < best.cost) {
      best = std::move(other);
    }
  }
  return best.wiring.graph();
}

Graph random_regular(uint32_t n_nodes, uint32_t n_ports, uint64_t seed) {
  RINGBOLT_ASSERT(n_ports >= 3 && n_nodes >= n_ports + 1);
  Dice dice(seed);
  for (;;) {  // ends: with three ports and more nearly every one is connected
    Graph graph = pair_ports(n_nodes, n_ports, dice).graph();
    if (distances(graph).is_connected) {
      return graph;
    }
  }
}

}  // namespace ringbolt::fabric
