#include "fabric/prediction.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/assert.h"
#include "fabric/bounds.h"
#include "fabric/packing.h"

namespace ringbolt::fabric {
namespace {

constexpr int64_t kMostTrees = 64;

/// Keeps the faster one.
class Least {
 public:
  void consider(const char* schedule, double time_us) {
    constexpr double kAsGood = 1 - 1e-9;  // of equal ones the first
    if (best_.schedule.empty() || time_us < best_.time_us * kAsGood) {
      best_ = {schedule, time_us};
    }
  }
  Estimate take() { return best_; }

 private:
  Estimate best_;
};

/// Shortest-path trees from every node at once: the most that a direction of a pair carries over its capacity.
double worst_flood_load(const Graph& merged) {
  std::map<Arc, double> capacities;
  for (const Cable& cable : merged.cables) {
    capacities[{cable.a, cable.b}] = capacities[{cable.b, cable.a}] = cable.capacity.value();
  }
  std::map<Arc, double> loads;
  double worst = 0;
  for (uint32_t root = 0; root < merged.n_nodes; ++root) {
    for (const Arc& arc : shortest_path_tree(merged, root).arcs) {
      worst = std::max(worst, (loads[arc] += 1) / capacities[arc]);
    }
  }
  return worst;
}

}  // namespace

double pipelined_us(const CostModel& model, uint32_t n_levels, double bytes, double rate_bytes_per_us) {
  constexpr double kLeastChunk = 4096;
  constexpr double kMostChunk = 1048576;
  // Of one level nothing waits for the end of a chunk: the longer the better.
  const double best =
      n_levels <= 1 ? kMostChunk : std::sqrt(bytes * model.alpha_us * rate_bytes_per_us / (n_levels - 1.0));
  const double n_chunks = std::max(1.0, std::ceil(bytes / std::clamp(best, kLeastChunk, kMostChunk)));
  return (n_levels + n_chunks - 1) * (model.alpha_us + bytes / (n_chunks * rate_bytes_per_us));
}

Prediction::Prediction(const Graph& graph, const CostModel& model) : model_(model), n_nodes_(graph.n_nodes) {
  const Graph merged = merge_rails(graph);
  const Distances far = distances(merged);
  RINGBOLT_ASSERT(far.is_connected && n_nodes_ >= 2);
  diameter_ = far.diameter;
  radius_ = far.radius;
  reach_of_0_ = std::ranges::max(hops_from(neighbours(merged), 0));
  least_rate_ = std::ranges::min(merged.cables, {}, &Cable::capacity).capacity.value() * model.bytes_per_us;
  flood_load_ = worst_flood_load(merged) / model.bytes_per_us;
  pair_rate_ = equal_split_rate(merged).value * model.bytes_per_us;
  is_mesh_ = diameter_ == 1;
  has_ring_ = n_nodes_ >= 3;
  for (uint32_t node = 0; has_ring_ && node < n_nodes_; ++node) {
    has_ring_ = is_joined(merged, node, (node + 1) % n_nodes_);
  }
  undirected_ = pack_undirected(merged, few_trees_scaling(merged, tree_rate, kMostTrees));
  if (merged.cables.size() * n_nodes_ <= kMostPackingWork) {
    const auto from_0 = [](const Graph& pieces) { return rate_from(pieces, 0); };
    from_all_ = pack_from_all(merged, few_trees_scaling(merged, shard_rate, kMostTrees));
    from_0_ = pack_from_one(merged, 0, few_trees_scaling(merged, from_0, kMostTrees));
  }
}

Estimate Prediction::all_reduce(double bytes) const {
  const double n = n_nodes_;
  Least least;
  if (is_mesh_) {
    least.consider("exchange", model_.alpha_us + bytes / least_rate_);
    least.consider("direct", 2 * (model_.alpha_us + bytes / n / least_rate_));
  }
  least.consider("flood", diameter_ * model_.alpha_us + bytes * flood_load_);
  least.consider("tree", pipelined_us(model_, 2 * radius_, bytes, least_rate_));
  if (has_ring_) {
    least.consider("ring", 2 * (n - 1) * model_.alpha_us + (n - 1) * bytes / n / least_rate_);
  }
  if (!undirected_.trees.empty()) {
    const auto n_trees = static_cast<double>(undirected_.n_trees());
    least.consider("packed trees", pipelined_us(model_, 2 * undirected_.depth(), bytes / n_trees,
                                                model_.bytes_per_us / undirected_.scale.value()));
  }
  return least.take();
}

Estimate Prediction::all_gather(double bytes) const {
  const double shard = bytes / n_nodes_;
  Least least;
  if (is_mesh_) {
    least.consider("direct", model_.alpha_us + shard / least_rate_);
  }
  least.consider("flood", diameter_ * model_.alpha_us + shard * flood_load_);
  if (has_directed_trees()) {
    const double per_root = static_cast<double>(from_all_.n_trees()) / n_nodes_;
    least.consider("packed trees", pipelined_us(model_, from_all_.depth(), shard / per_root,
                                                model_.bytes_per_us / from_all_.scale.value()));
  }
  return least.take();
}

Estimate Prediction::broadcast(double bytes) const {
  Least least;
  least.consider("tree", pipelined_us(model_, reach_of_0_, bytes, least_rate_));
  if (is_mesh_) {  // each neighbour gets a part and passes it on to all
    least.consider("scatter", pipelined_us(model_, 2, bytes / (n_nodes_ - 1.0), least_rate_));
  }
  if (!from_0_.trees.empty()) {
    const auto n_trees = static_cast<double>(from_0_.n_trees());
    least.consider("packed trees",
                   pipelined_us(model_, from_0_.depth(), bytes / n_trees, model_.bytes_per_us / from_0_.scale.value()));
  }
  return least.take();
}

Estimate Prediction::all_to_all(double bytes) const {
  return {"shortest paths", diameter_ * model_.alpha_us + bytes / n_nodes_ / pair_rate_};
}

}  // namespace ringbolt::fabric
