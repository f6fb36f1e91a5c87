#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "collective/cost_model.h"
#include "fabric/graph.h"
#include "fabric/tree.h"

namespace ringbolt::collective {

class Loads;

/// The cables of a group, whose ranks are the nodes, and what builders need to know of them. What takes long is
/// computed when it is first asked for, once, and kept; so the first call of such a function takes up to seconds on 64
/// nodes. The same graph and model give the same answers on every rank. Neither copied nor moved. All functions are
/// thread-safe.
class Topology {
 public:
  /// The graph must be connected and have a node at least. Rails count as one cable of their summed capacity.
  explicit Topology(const fabric::Graph& graph, const CostModel& model = {});
  ~Topology();
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;

  uint32_t n_ranks() const { return graph_.n_nodes; }
  const fabric::Graph& graph() const { return graph_; }  ///< rails merged, sorted
  const CostModel& model() const { return model_; }
  /// References that this gives out are good as long as it, and what they show does not change.
  const std::vector<std::vector<uint32_t>>& neighbours() const { return neighbours_; }  ///< ascending
  /// Directions between neighbours are numbered from 0; kNoLink if the two are none.
  uint32_t link(uint32_t from, uint32_t to) const;
  uint32_t n_links() const { return static_cast<uint32_t>(rates_.size()); }
  static constexpr uint32_t kNoLink = UINT32_MAX;
  double rate_of_link(uint32_t link) const { return rates_[link]; }  ///< in bytes/us
  /// Of the cables of two neighbours, one way, in bytes/us; 0 if they are none.
  double rate(uint32_t from, uint32_t to) const;
  /// Of the slowest pair of neighbours, in bytes/us; of a single rank, that of capacity 1.
  double least_rate() const { return least_rate_; }

  /// Ranks are below n_ranks() in all functions here.
  uint32_t hops(uint32_t from, uint32_t to) const;
  uint32_t diameter() const;
  /// How many shortest paths there are; kManyPaths if there are as many or more.
  uint32_t n_shortest_paths(uint32_t from, uint32_t to) const;
  static constexpr uint32_t kManyPaths = 1'000'000;
  /// The ranks between two different ones on a shortest path. Path 0 is chosen so that paths 0 of all pairs share
  /// cables as evenly as can be; `turn` counts on from there through all equal paths, and round.
  std::vector<uint32_t> path(uint32_t from, uint32_t to, uint64_t turn = 0) const;

  /// The same in kWays parts, each with a path of its own: they share cables even better. Beyond 64 ranks all parts
  /// take path 0.
  std::vector<uint32_t> way(uint32_t from, uint32_t to, uint32_t part) const;
  static constexpr uint32_t kWays = 4;
  /// Whether some two ranks have several shortest paths.
  bool has_choice_of_paths() const;

  // For how many microseconds the busiest direction of a cable sends if ...
  double pair_load_us() const;             ///< every rank sends a byte to every other over path 0
  double split_load_us() const;            ///< the same over way(), a part of it each
  double flood_load_us() const;            ///< every rank sends a byte to all over parents_towards() itself
  double split_and_flood_load_us() const;  ///< both of these at a time

  /// How many bytes a rank relays, on average, if every rank sends a byte to every other.
  double relays_of_pairs() const;

  /// The node from which the farthest is nearest.
  uint32_t centre() const;
  /// The tree of shortest paths to `root`: for each rank the next one, kNoParent for the root. Of equal next ones it
  /// takes another for another root, so that the trees of all roots share cables. Shape: [n_ranks].
  const std::vector<uint32_t>& parents_towards(uint32_t root) const;
  static constexpr uint32_t kNoParent = UINT32_MAX;
  /// A cycle through all ranks along cables, beginning with rank 0, if one is known: 0, 1, 2 ... or what a search
  /// finds. None below 3 ranks. Shape: [n_ranks].
  const std::optional<std::vector<uint32_t>>& ring() const;

  /// Trees that are packed into the graph, kMostTrees at most, as in fabric/packing.h. Empty where that would take too
  /// long: see can_pack_undirected() and can_pack_from_all(), and of more than 64 nodes with many ports. From one root
  /// fewer trees are packed on larger graphs, so that it takes two or three seconds at most; on a mesh whose cables are
  /// equal all of them are known.
  const fabric::Packing& undirected_trees() const;
  const fabric::Packing& trees_from_all() const;
  const fabric::Packing& trees_from_one(uint32_t root) const;
  static constexpr int64_t kMostTrees = 64;
  bool can_pack_undirected() const;
  bool can_pack_from_all() const;

 private:
  struct Lazy;

  const std::vector<uint32_t>& hops_to(uint32_t to) const;
  const std::vector<uint32_t>& paths_to(uint32_t to) const;
  double average_load_us() const;
  void add_split(Loads& loads) const;
  void add_flood(Loads& loads) const;
  std::vector<uint32_t> balance_paths(uint32_t n_parts) const;
  std::vector<uint32_t> path_of_index(uint32_t from, uint32_t to, uint32_t index) const;

  fabric::Graph graph_;
  CostModel model_;
  std::vector<std::vector<uint32_t>> neighbours_;
  std::vector<uint32_t> first_links_;  // of every rank
  std::vector<double> rates_;          // by link
  double least_rate_ = 0;
  // What const functions compute once; each part under a std::once_flag of its own.
  std::unique_ptr<Lazy> lazy_;
};

}  // namespace ringbolt::collective
