#include "collective/topology.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/assert.h"
#include "collective/loads.h"
#include "collective/ring_search.h"
#include "fabric/bounds.h"
#include "fabric/packing.h"

namespace ringbolt::collective {
namespace {

// Beyond these packing takes seconds (fabric::Prediction has measured them).
constexpr size_t kMostDirectedWork = 21'000;  // cables times nodes
constexpr uint32_t kMostUndirectedNodes = 64;
constexpr uint32_t kMostBalancedNodes = 64;
constexpr uint32_t kMostPathsTried = 16;

}  // namespace

/// What is computed once, when it is asked for.
struct Topology::Lazy {
  /// By destination, as hops and counts of paths are symmetric to no one.
  struct ToOne {
    std::once_flag is_known;
    std::vector<uint32_t> hops;
    std::vector<uint32_t> n_paths;
    std::once_flag are_parents_known;
    std::vector<uint32_t> parents;
  };
  explicit Lazy(uint32_t n_ranks) : to(n_ranks), from_one(n_ranks), is_from_one_known(n_ranks) {}

  std::vector<ToOne> to;
  std::once_flag are_paths_known, are_ways_known, are_distances_known, is_ring_known, is_undirected_known,
      is_from_all_known;
  std::vector<uint32_t> paths;  ///< [from * n_ranks + to]: index of path 0
  std::vector<uint32_t> ways;   ///< [(from * n_ranks + to) * kWays]: indices, ascending
  fabric::Distances distances;
  std::once_flag is_pair_load_known, is_split_load_known, is_flood_load_known;
  double pair_load_us = 0;
  double split_load_us = 0;
  double flood_load_us = 0;
  std::optional<std::vector<uint32_t>> ring;
  fabric::Packing undirected;
  fabric::Packing from_all;
  std::vector<fabric::Packing> from_one;
  std::vector<std::once_flag> is_from_one_known;
};

Topology::Topology(const fabric::Graph& graph, const CostModel& model)
    : graph_(fabric::merge_rails(graph)),
      model_(model),
      neighbours_(fabric::neighbours(graph_)),
      lazy_(std::make_unique<Lazy>(graph_.n_nodes)) {
  RINGBOLT_ASSERT(graph_.n_nodes >= 1);
  RINGBOLT_ASSERT(std::ranges::count(fabric::hops_from(neighbours_, 0), fabric::kUnreachable) == 0);
  for (const auto& list : neighbours_) {
    first_links_.push_back(n_links());
    rates_.resize(rates_.size() + list.size());
  }
  least_rate_ = graph_.cables.empty() ? model_.bytes_per_us : std::numeric_limits<double>::infinity();
  for (const fabric::Cable& cable : graph_.cables) {
    const double rate = cable.capacity.value() * model_.bytes_per_us;
    rates_[link(cable.a, cable.b)] = rates_[link(cable.b, cable.a)] = rate;
    least_rate_ = std::min(least_rate_, rate);
  }
}

Topology::~Topology() = default;

uint32_t Topology::link(uint32_t from, uint32_t to) const {
  const auto& list = neighbours_[from];
  const auto place = std::ranges::lower_bound(list, to);
  return place == list.end() || *place != to ? kNoLink
                                             : first_links_[from] + static_cast<uint32_t>(place - list.begin());
}

double Topology::rate(uint32_t from, uint32_t to) const {
  const uint32_t number = link(from, to);
  return number == kNoLink ? 0 : rates_[number];
}

const std::vector<uint32_t>& Topology::hops_to(uint32_t to) const {
  Lazy::ToOne& one = lazy_->to[to];
  std::call_once(one.is_known, [&] {
    one.hops = fabric::hops_from(neighbours_, to);  // cables lead both ways
    std::vector<uint32_t> order(n_ranks());
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::stable_sort(order, {}, [&](uint32_t node) { return one.hops[node]; });
    one.n_paths.assign(n_ranks(), 0);
    one.n_paths[to] = 1;
    for (const uint32_t node : order) {
      for (const uint32_t next : neighbours_[node]) {
        if (one.hops[next] + 1 == one.hops[node]) {
          one.n_paths[node] = std::min(kManyPaths, one.n_paths[node] + one.n_paths[next]);
        }
      }
    }
  });
  return one.hops;
}

const std::vector<uint32_t>& Topology::paths_to(uint32_t to) const {
  hops_to(to);
  return lazy_->to[to].n_paths;
}

uint32_t Topology::hops(uint32_t from, uint32_t to) const { return hops_to(to)[from]; }

uint32_t Topology::diameter() const {
  std::call_once(lazy_->are_distances_known, [&] { lazy_->distances = fabric::distances(graph_); });
  return lazy_->distances.diameter;
}

/// Of many ranks: as if all cables carried the same.
double Topology::average_load_us() const {
  diameter();
  double rate = 0;
  for (const double one : rates_) {
    rate += one;
  }
  return static_cast<double>(lazy_->distances.sum) / rate;
}

double Topology::pair_load_us() const {
  std::call_once(lazy_->is_pair_load_known, [&] {
    Loads loads(*this);
    for (uint32_t pair = 0; n_ranks() <= kMostBalancedNodes && pair < n_ranks() * n_ranks(); ++pair) {
      if (pair / n_ranks() != pair % n_ranks()) {
        loads.add(pair / n_ranks(), pair % n_ranks(), 1);
      }
    }
    lazy_->pair_load_us = n_ranks() <= kMostBalancedNodes ? loads.most_us() : average_load_us();
  });
  return lazy_->pair_load_us;
}

double Topology::split_load_us() const {
  std::call_once(lazy_->is_split_load_known, [&] {
    Loads loads(*this);
    for (uint32_t pair = 0; n_ranks() <= kMostBalancedNodes && pair < n_ranks() * n_ranks(); ++pair) {
      const uint32_t from = pair / n_ranks();
      const uint32_t to = pair % n_ranks();
      for (uint32_t part = 0; from != to && part < kWays; ++part) {
        loads.add(from, way(from, to, part), to, 1.0 / kWays);
      }
    }
    lazy_->split_load_us = n_ranks() <= kMostBalancedNodes ? loads.most_us() : average_load_us();
  });
  return lazy_->split_load_us;
}

double Topology::flood_load_us() const {
  std::call_once(lazy_->is_flood_load_known, [&] {
    Loads loads(*this);
    for (uint32_t root = 0; root < n_ranks(); ++root) {
      const std::vector<uint32_t>& parents = parents_towards(root);
      for (uint32_t rank = 0; rank < n_ranks(); ++rank) {
        if (rank != root) {
          loads.add_hop(parents[rank], rank, 1);
        }
      }
    }
    lazy_->flood_load_us = loads.most_us();
  });
  return lazy_->flood_load_us;
}

uint32_t Topology::centre() const {
  diameter();
  return lazy_->distances.centre;
}

const std::vector<uint32_t>& Topology::parents_towards(uint32_t root) const {
  const std::vector<uint32_t>& hops = hops_to(root);
  Lazy::ToOne& one = lazy_->to[root];
  std::call_once(one.are_parents_known, [&] {
    one.parents.assign(n_ranks(), kNoParent);
    for (uint32_t node = 0; node < n_ranks(); ++node) {
      std::vector<uint32_t> nearer;
      std::ranges::copy_if(neighbours_[node], std::back_inserter(nearer),
                           [&](uint32_t next) { return hops[next] + 1 == hops[node]; });
      if (node != root) {
        one.parents[node] = nearer[(node + root) % nearer.size()];
      }
    }
  });
  return one.parents;
}

uint32_t Topology::n_shortest_paths(uint32_t from, uint32_t to) const { return paths_to(to)[from]; }

/// The index-th of the shortest paths in the order of their ranks.
std::vector<uint32_t> Topology::path_of_index(uint32_t from, uint32_t to, uint32_t index) const {
  const std::vector<uint32_t>& hops = hops_to(to);
  const std::vector<uint32_t>& n_paths = paths_to(to);
  std::vector<uint32_t> between;
  for (uint32_t node = from; hops[node] > 1;) {
    uint32_t last = node;
    for (const uint32_t next : neighbours_[node]) {
      if (hops[next] + 1 != hops[node]) {
        continue;
      }
      last = next;
      if (index < n_paths[next]) {
        break;
      }
      index -= n_paths[next];
    }
    node = last;
    between.push_back(node);
  }
  return between;
}

/// Gives each part of each pair, the pairs with the least choice first, the path whose cables carry least; then lets
/// all choose again, a few times. Shape: [from * n_ranks + to][n_parts]: indices of paths, ascending.
std::vector<uint32_t> Topology::balance_paths(uint32_t n_parts) const {
  constexpr int kRounds = 4;
  const uint32_t n = n_ranks();
  std::vector<uint32_t> pairs;
  for (uint32_t pair = 0; pair < n * n; ++pair) {
    if (pair / n != pair % n) {
      pairs.push_back(pair);
    }
  }
  std::ranges::stable_sort(pairs, {}, [&](uint32_t pair) { return n_shortest_paths(pair / n, pair % n); });
  std::vector<double> loads(static_cast<size_t>(n) * n);
  const auto add_load = [&](uint32_t pair, uint32_t index, double weight) {
    std::pair<double, double> load{0, 0};  // the most of a cable, and the sum
    std::vector<uint32_t> path = path_of_index(pair / n, pair % n, index);
    path.push_back(pair % n);
    uint32_t node = pair / n;
    for (const uint32_t next : path) {
      double& here = loads[static_cast<size_t>(node) * n + next];
      here += weight / rate(node, next);
      load = {std::max(load.first, here), load.second + here};
      node = next;
    }
    return load;
  };
  std::vector<uint32_t> balanced(loads.size() * n_parts);
  for (int round = 0; round < kRounds; ++round) {
    for (const uint32_t pair : pairs) {
      const uint32_t n_paths = std::min(n_shortest_paths(pair / n, pair % n), kMostPathsTried);
      for (uint32_t part = 0; part < n_parts; ++part) {
        uint32_t& chosen = balanced[static_cast<size_t>(pair) * n_parts + part];
        if (round > 0) {
          add_load(pair, chosen, -1);
        }
        std::pair<double, double> least{std::numeric_limits<double>::infinity(), 0};
        for (uint32_t index = 0; n_paths > 1 && index < n_paths; ++index) {
          const auto load = add_load(pair, index, 0);
          if (load < least) {
            least = load;
            chosen = index;
          }
        }
        add_load(pair, chosen, 1);
      }
    }
  }
  for (const uint32_t pair : pairs) {
    const auto first = balanced.begin() + static_cast<std::ptrdiff_t>(pair) * n_parts;
    std::sort(first, first + n_parts);
  }
  return balanced;
}

std::vector<uint32_t> Topology::path(uint32_t from, uint32_t to, uint64_t turn) const {
  RINGBOLT_ASSERT(from != to && from < n_ranks() && to < n_ranks());
  const uint32_t n_paths = n_shortest_paths(from, to);
  uint32_t first = 0;
  if (n_paths > 1 && n_ranks() > kMostBalancedNodes) {
    first = (from * 2654435761u + to * 40503u) % n_paths;  // any that differs from pair to pair
  } else if (n_paths > 1) {
    std::call_once(lazy_->are_paths_known, [&] { lazy_->paths = balance_paths(1); });
    first = lazy_->paths[static_cast<size_t>(from) * n_ranks() + to];
  }
  return path_of_index(from, to, static_cast<uint32_t>((first + turn) % n_paths));
}

std::vector<uint32_t> Topology::way(uint32_t from, uint32_t to, uint32_t part) const {
  if (n_ranks() > kMostBalancedNodes || n_shortest_paths(from, to) == 1) {
    return path(from, to);
  }
  std::call_once(lazy_->are_ways_known, [&] { lazy_->ways = balance_paths(kWays); });
  return path_of_index(from, to, lazy_->ways[(static_cast<size_t>(from) * n_ranks() + to) * kWays + part]);
}

const std::optional<std::vector<uint32_t>>& Topology::ring() const {
  std::call_once(lazy_->is_ring_known, [&] { lazy_->ring = find_ring(neighbours_); });
  return lazy_->ring;
}

bool Topology::can_pack_undirected() const { return n_ranks() >= 2 && n_ranks() <= kMostUndirectedNodes; }

bool Topology::can_pack_directed() const {
  return n_ranks() >= 2 && graph_.cables.size() * n_ranks() <= kMostDirectedWork;
}

const fabric::Packing& Topology::undirected_trees() const {
  std::call_once(lazy_->is_undirected_known, [&] {
    if (can_pack_undirected()) {
      lazy_->undirected =
          fabric::pack_undirected(graph_, fabric::few_trees_scaling(graph_, fabric::tree_rate, kMostTrees));
    }
  });
  return lazy_->undirected;
}

const fabric::Packing& Topology::trees_from_all() const {
  std::call_once(lazy_->is_from_all_known, [&] {
    if (can_pack_directed()) {
      const int64_t most_per_root = std::max<int64_t>(4, 2 * kMostTrees / n_ranks());
      lazy_->from_all =
          fabric::pack_from_all(graph_, fabric::few_trees_scaling(graph_, fabric::shard_rate, most_per_root));
    }
  });
  return lazy_->from_all;
}

const fabric::Packing& Topology::trees_from_one(uint32_t root) const {
  RINGBOLT_ASSERT(root < n_ranks());
  std::call_once(lazy_->is_from_one_known[root], [&] {
    if (can_pack_directed()) {
      const auto rate_of = [&](const fabric::Graph& pieces) { return fabric::rate_from(pieces, root); };
      lazy_->from_one[root] =
          fabric::pack_from_one(graph_, root, fabric::few_trees_scaling(graph_, rate_of, kMostTrees));
    }
  });
  return lazy_->from_one[root];
}

}  // namespace ringbolt::collective
