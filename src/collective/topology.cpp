#include "collective/topology.h"

#include <algorithm>
#include <limits>

#include "base/assert.h"
#include "collective/ring_search.h"
#include "collective/topology_lazy.h"
#include "fabric/bounds.h"
#include "fabric/packing.h"

namespace ringbolt::collective {
namespace {

// Beyond these packing takes seconds (fabric::Prediction has measured them).
constexpr size_t kMostDirectedWork = 21'000;  // cables times nodes
constexpr uint32_t kMostUndirectedNodes = 64;

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
