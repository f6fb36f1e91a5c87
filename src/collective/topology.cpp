#include "collective/topology.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/assert.h"
#include "collective/ring_search.h"
#include "collective/topology_lazy.h"
#include "fabric/bounds.h"
#include "fabric/packing.h"

namespace ringbolt::collective {
namespace {

// Beyond these packing takes more than two or three seconds.
constexpr size_t kMostWorkFromAll = 21'000;  // cables times nodes
constexpr uint32_t kMostUndirectedNodes = 256;
constexpr uint32_t kMostFinelyScaledNodes = 64;
constexpr double kMostWorkUndirected = 6e10;  // see undirected_work()
// Trees from one root: a tenth of a microsecond for each cable, node and pair of trees, on meshes, tori and hypercubes.
constexpr double kMostWorkFromOne = 2e7;
// n - 1 trees of n - 1 arcs: 65025 arcs at most.
constexpr uint32_t kMostMeshNodes = 256;

/// Whether every two nodes share a cable, all of the same rate.
bool is_even_mesh(const fabric::Graph& merged) {
  const size_t n = merged.n_nodes;
  return merged.cables.size() == n * (n - 1) / 2 && std::ranges::all_of(merged.cables, [&](const fabric::Cable& cable) {
           return cable.capacity == merged.cables.front().capacity;
         });
}

/// What needs no search: a tree over each other node, which passes on to all. Each uses the directions from its node,
/// and one from the root.
fabric::Packing mesh_trees_from(const fabric::Graph& mesh, uint32_t root) {
  fabric::Packing packing{fabric::Fraction(1) / mesh.cables.front().capacity};
  for (uint32_t first = 0; first < mesh.n_nodes; ++first) {
    if (first == root) {
      continue;
    }
    fabric::Tree tree{root, 1, {{root, first}}};
    for (uint32_t node = 0; node < mesh.n_nodes; ++node) {
      if (node != root && node != first) {
        tree.arcs.push_back({first, node});
      }
    }
    packing.trees.push_back(std::move(tree));
  }
  return packing;
}

/// For each piece of a cable, all pieces in trees may be looked at, and for each of them ways through all trees.
double undirected_work(const fabric::Graph& graph, const fabric::Scaling& scaling) {
  const double in_trees = static_cast<double>(scaling.n_trees) * graph.n_nodes;
  double n_pieces = 0;
  for (const fabric::Cable& cable : fabric::in_pieces(graph, scaling.scale).cables) {
    n_pieces += cable.capacity.value();
  }
  return n_pieces * in_trees * in_trees;
}

/// Up to 64 nodes the best scale is searched for; above, the bound of a hundred scales would take long, too.
fabric::Scaling undirected_scaling(const fabric::Graph& graph) {
  if (graph.n_nodes <= kMostFinelyScaledNodes) {
    return fabric::few_trees_scaling(graph, fabric::tree_rate, Topology::kMostTrees);
  }
  const fabric::Scaling scaling = fabric::coarse_scaling(graph, fabric::tree_rate, Topology::kMostTrees);
  return undirected_work(graph, scaling) <= kMostWorkUndirected ? scaling : fabric::Scaling();
}

}  // namespace

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

uint32_t Topology::diameter() const {
  std::call_once(lazy_->are_distances_known, [&] { lazy_->distances = fabric::distances(graph_); });
  return lazy_->distances.diameter;
}

bool Topology::has_choice_of_paths() const {
  std::call_once(lazy_->is_choice_known, [&] {
    for (uint32_t pair = 0; !lazy_->has_choice && pair < n_ranks() * n_ranks(); ++pair) {
      lazy_->has_choice = n_shortest_paths(pair / n_ranks(), pair % n_ranks()) > 1;
    }
  });
  return lazy_->has_choice;
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

const std::optional<std::vector<uint32_t>>& Topology::ring() const {
  std::call_once(lazy_->is_ring_known, [&] { lazy_->ring = find_ring(neighbours_); });
  return lazy_->ring;
}

bool Topology::can_pack_undirected() const { return n_ranks() >= 2 && n_ranks() <= kMostUndirectedNodes; }

bool Topology::can_pack_from_all() const {
  return n_ranks() >= 2 && graph_.cables.size() * n_ranks() <= kMostWorkFromAll;
}

const fabric::Packing& Topology::undirected_trees() const {
  std::call_once(lazy_->is_undirected_known, [&] {
    if (can_pack_undirected()) {
      lazy_->undirected = fabric::pack_undirected(graph_, undirected_scaling(graph_));
    }
  });
  return lazy_->undirected;
}

const fabric::Packing& Topology::trees_from_all() const {
  std::call_once(lazy_->is_from_all_known, [&] {
    if (can_pack_from_all()) {
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
    if (n_ranks() < 2) {
      return;
    }
    if (n_ranks() <= kMostMeshNodes && is_even_mesh(graph_)) {
      lazy_->from_one[root] = mesh_trees_from(graph_, root);
      return;
    }
    const double work = static_cast<double>(graph_.cables.size()) * n_ranks();
    const auto most_trees = std::min(kMostTrees, static_cast<int64_t>(std::sqrt(kMostWorkFromOne / work)));
    if (most_trees > 0) {
      const auto rate_of = [&](const fabric::Graph& pieces) { return fabric::rate_from(pieces, root); };
      fabric::Scaling scaling = fabric::few_trees_scaling(graph_, rate_of, kMostTrees);
      scaling.n_trees = std::min(scaling.n_trees, most_trees);
      lazy_->from_one[root] = fabric::pack_from_one(graph_, root, scaling);
    }
  });
  return lazy_->from_one[root];
}

}  // namespace ringbolt::collective
