#include <algorithm>
#include <limits>
#include <numeric>

#include "base/assert.h"
#include "collective/topology.h"
#include "collective/topology_lazy.h"

namespace ringbolt::collective {
namespace {

// Of one pair, which on a torus may have thousands.
constexpr uint32_t kMostPathsTried = 16;

}  // namespace

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
          // Cut each time, so that the sum of two never wraps.
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

}  // namespace ringbolt::collective
