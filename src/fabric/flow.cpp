#include "fabric/flow.h"

#include <algorithm>
#include <cerrno>

#include "base/assert.h"
#include "base/error.h"

namespace ringbolt::fabric {

void FlowNetwork::add_arc(uint32_t from, uint32_t to, int64_t capacity, int64_t back) {
  RINGBOLT_ASSERT(from < n_nodes() && to < n_nodes() && capacity >= 0 && back >= 0);
  const auto index = static_cast<uint32_t>(arcs_.size());
  // At an even index, and its reverse beside it: index ^ 1.
  arcs_.push_back({to, first_[from], capacity, 0});
  first_[from] = index;
  arcs_.push_back({from, first_[to], back, 0});
  first_[to] = index + 1;
}

int64_t FlowNetwork::max_flow(uint32_t source, uint32_t sink) {
  RINGBOLT_ASSERT(source != sink);
  for (Arc& arc : arcs_) {
    arc.left = arc.capacity;
  }
  int64_t total = 0;
  while (find_levels(source, sink)) {
    // Within a phase an arc that led nowhere is not looked at again, which bounds the phase by nodes times arcs.
    current_ = first_;
    while (const int64_t pushed = push(source, sink, INT64_MAX)) {
      total += pushed;
    }
  }
  return total;
}

bool FlowNetwork::find_levels(uint32_t source, uint32_t sink) {
  level_.assign(first_.size(), kNone);
  level_[source] = 0;
  std::vector<uint32_t> queue{source};
  for (size_t next = 0; next < queue.size(); ++next) {
    for (uint32_t index = first_[queue[next]]; index != kNone; index = arcs_[index].next) {
      const Arc& arc = arcs_[index];
      if (arc.left > 0 && level_[arc.to] == kNone) {
        level_[arc.to] = level_[queue[next]] + 1;
        queue.push_back(arc.to);
      }
    }
  }
  // All nodes get a level, the sink's or not: is_on_source_side() reads them after the last phase.
  return level_[sink] != kNone;
}

int64_t FlowNetwork::push(uint32_t node, uint32_t sink, int64_t most) {  // as deep as the path has nodes
  if (node == sink) {
    return most;
  }
  for (uint32_t& index = current_[node]; index != kNone; index = arcs_[index].next) {
    Arc& arc = arcs_[index];
    if (arc.left > 0 && level_[arc.to] == level_[node] + 1) {
      if (const int64_t pushed = push(arc.to, sink, std::min(most, arc.left)); pushed > 0) {
        arc.left -= pushed;
        arcs_[index ^ 1U].left += pushed;
        return pushed;
      }
    }
  }
  return 0;
}

int64_t common_denominator(const Graph& graph) {
  int64_t common = 1;
  for (const Cable& cable : graph.cables) {
    common = least_common_multiple(common, cable.capacity.denominator());
  }
  return common;
}

int64_t scaled(const Fraction& value, int64_t scale) {
  // FlowNetwork wants sums below 2^62.
  constexpr int64_t kTooMuch = int64_t{1} << 53U;  // thousands of such still have a sum
  const Fraction product = value * Fraction(scale);
  RINGBOLT_ASSERT(product.is_whole());
  if (product.numerator() >= kTooMuch || product.numerator() <= -kTooMuch) {
    throw base::Error(EOVERFLOW, "exact arithmetic", "fabric", "give cables speeds with common divisors");
  }
  return product.numerator();
}

FlowNetwork flow_network(const Graph& graph, int64_t scale, uint32_t n_more) {
  FlowNetwork network(graph.n_nodes + n_more);
  for (const Cable& cable : graph.cables) {
    const int64_t capacity = scaled(cable.capacity, scale);
    network.add_arc(cable.a, cable.b, capacity, capacity);
  }
  return network;
}

}  // namespace ringbolt::fabric
