#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fabric/graph.h"
#include "fabric/tree.h"

namespace ringbolt::fabric {

/// What a message costs; nothing here is measured.
struct CostModel {
  double alpha_us = 10;        ///< of one hop, whatever the size
  double bytes_per_us = 5000;  ///< of a cable of capacity 1, each way
};

/// How a collective is done, and how long that takes.
struct Estimate {
  std::string schedule;
  double time_us = 0;
};

/// What one collective of `bytes` takes if nothing but hops and cables cost time. `bytes` is the whole vector: what
/// all_gather ends with, reduce_scatter begins with, all_reduce reduces, broadcast sends; all_to_all sends bytes / N to
/// every node.
class Prediction {
 public:
  /// More cables times nodes than this take too long to pack directed trees: seconds.
  static constexpr size_t kMostPackingWork = 21'000;

  /// Packs trees, which takes about a second for 64 nodes. The graph is connected and has 2 to 64 nodes.
  Prediction(const Graph& graph, const CostModel& model);

  /// Whether packed trees were among the schedules of all_gather and broadcast.
  bool has_directed_trees() const { return !from_all_.trees.empty(); }

  // The least of the schedules that fit the graph.
  Estimate all_reduce(double bytes) const;
  Estimate all_gather(double bytes) const;  ///< reduce_scatter takes as long: the same trees, backwards
  Estimate broadcast(double bytes) const;   ///< from node 0; reduce takes as long
  Estimate all_to_all(double bytes) const;

 private:
  CostModel model_;
  uint32_t n_nodes_;
  uint32_t diameter_;
  uint32_t radius_;
  uint32_t reach_of_0_;  ///< hops from node 0 to the farthest
  double least_rate_;    ///< of a pair of neighbours, in bytes/us
  double flood_load_;    ///< us that a shard of 1 byte takes where most shortest-path trees share a cable
  double pair_rate_;     ///< of all_to_all, in bytes/us
  bool is_mesh_;
  bool has_ring_;  ///< 0 - 1 - ... - 0
  Packing undirected_;
  Packing from_all_;
  Packing from_0_;
};

/// Time of `n_levels` hops, one after the other, of `bytes` that are cut into chunks of 4 KiB to 1 MiB: as large as
/// makes the sum of waiting and sending least. (levels + chunks - 1) times (alpha + chunk / rate). Thread-safe.
double pipelined_us(const CostModel& model, uint32_t n_levels, double bytes, double rate_bytes_per_us);

}  // namespace ringbolt::fabric
