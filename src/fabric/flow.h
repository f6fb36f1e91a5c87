#pragma once

#include <cstdint>
#include <vector>

#include "fabric/fraction.h"
#include "fabric/graph.h"

namespace ringbolt::fabric {

/// A network of arcs with whole capacities, for maximum flows by shortest augmenting paths in phases (Dinic 1970). The
/// sum of all capacities must stay below 2^62. Not thread-safe.
class FlowNetwork {
 public:
  explicit FlowNetwork(uint32_t n_nodes) : first_(n_nodes, kNone) {}

  uint32_t n_nodes() const { return static_cast<uint32_t>(first_.size()); }
  /// An arc, and one back of capacity `back` (a cable: both the same).
  void add_arc(uint32_t from, uint32_t to, int64_t capacity, int64_t back = 0);
  /// The value of a maximum flow; those of earlier calls are forgotten.
  int64_t max_flow(uint32_t source, uint32_t sink);
  /// After max_flow(): whether more could reach the node. These nodes are the smallest minimum cut's side of the
  /// source.
  bool is_on_source_side(uint32_t node) const { return level_[node] != kNone; }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Arc {
    uint32_t to;
    uint32_t next;  ///< of the same node
    int64_t capacity;
    int64_t left;
  };

  bool find_levels(uint32_t source, uint32_t sink);
  int64_t push(uint32_t node, uint32_t sink, int64_t most);

  std::vector<Arc> arcs_;  // each beside its reverse
  std::vector<uint32_t> first_;
  std::vector<uint32_t> level_;
  std::vector<uint32_t> current_;
};

/// The least number by which every capacity of `graph` becomes whole.
int64_t common_denominator(const Graph& graph);

/// A network of the cables of `graph` times `scale`, which makes them whole; `n_more` nodes behind the graph's.
FlowNetwork flow_network(const Graph& graph, int64_t scale, uint32_t n_more = 0);

/// `value` times `scale`, which must be whole. Throws base::Error (EOVERFLOW) if it is 2^53 or more.
int64_t scaled(const Fraction& value, int64_t scale);

}  // namespace ringbolt::fabric
