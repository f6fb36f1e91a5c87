#include "fabric/plan.h"

#include <algorithm>

#include "base/assert.h"

namespace ringbolt::fabric {
namespace {

uint32_t offset_of(const Cable& cable, uint32_t n_nodes) {
  const uint32_t ahead = cable.b - cable.a;
  return std::min(ahead, n_nodes - ahead);
}

/// The offsets of a circulant, ascending; empty if the graph is none, or a full mesh of more than a ring.
std::vector<uint32_t> offsets_of(const Graph& graph) {
  const uint32_t n = graph.n_nodes;
  std::vector<uint32_t> counts(n / 2 + 1);
  for (const Cable& cable : graph.cables) {
    ++counts[offset_of(cable, n)];
  }
  std::vector<uint32_t> offsets;
  for (uint32_t offset = 1; offset < counts.size(); ++offset) {
    if (counts[offset] != 0 && counts[offset] != (2 * offset == n ? n / 2 : n)) {
      return {};
    }
    if (counts[offset] != 0) {
      offsets.push_back(offset);
    }
  }
  // Two rails of one pair could stand for a cable that is missing elsewhere.
  const bool has_rails = merge_rails(graph).cables.size() != graph.cables.size();
  // There every numbering by neighbours is as plain.
  const bool is_mesh = n > 3 && offsets.size() == n / 2;
  return has_rails || is_mesh ? std::vector<uint32_t>{} : offsets;
}

/// Port numbers by the offsets of a circulant.
void plug_by_offsets(Plan& plan, const std::vector<uint32_t>& offsets) {
  const uint32_t n = plan.n_nodes;
  for (PlannedCable& cable : plan.cables) {
    const uint32_t ahead = cable.b.node - cable.a.node;
    const uint32_t offset = std::min(ahead, n - ahead);
    const auto j = static_cast<uint32_t>(std::ranges::find(offsets, offset) - offsets.begin());
    const bool is_half_way = 2 * offset == n;
    const bool is_forward = ahead == offset;  // from the lower node
    // Out by an even port, in by the odd one beside it.
    cable.a.port = 2 * j + (is_forward || is_half_way ? 0 : 1);
    cable.b.port = 2 * j + (is_forward && !is_half_way ? 1 : 0);
  }
}

/// Port numbers by neighbour, then rail.
void plug_by_neighbours(Plan& plan) {
  std::vector<uint32_t> next(plan.n_nodes);
  // As ends of higher nodes first: their neighbours have the lower numbers.
  for (PlannedCable& cable : plan.cables) {
    cable.b.port = next[cable.b.node]++;
  }
  for (PlannedCable& cable : plan.cables) {
    cable.a.port = next[cable.a.node]++;
  }
}

/// Of each cable whether it leads from its lower node to its higher one, if it is to lead out of each node as often as
/// into it, or once more or less. Walks along cables not yet directed until it is stuck, which is where it began: nodes
/// of an odd number of cables have one more, to a node that is not there (Hierholzer 1873, of circles alone).
std::vector<bool> directions_of(const Plan& plan) {
  struct Way {
    uint32_t cable;
    uint32_t to;
  };
  constexpr uint32_t kNoCable = UINT32_MAX;
  const uint32_t nowhere = plan.n_nodes;
  std::vector<std::vector<Way>> ways(plan.n_nodes + 1);
  for (uint32_t cable = 0; cable < plan.cables.size(); ++cable) {
    const PlannedCable& one = plan.cables[cable];
    ways[one.a.node].push_back({cable, one.b.node});
    ways[one.b.node].push_back({cable, one.a.node});
  }
  for (uint32_t node = 0; node < nowhere; ++node) {
    if (ways[node].size() % 2 != 0) {
      ways[node].push_back({kNoCable, nowhere});
      ways[nowhere].push_back({kNoCable, node});
    }
  }
  std::vector<bool> is_done(plan.cables.size(), false);
  std::vector<bool> is_odd_done(plan.n_nodes, false);
  std::vector<bool> is_upward(plan.cables.size(), false);
  // The node that is not there comes last: what begins at it would end anywhere.
  for (uint32_t start = 0; start <= nowhere; ++start) {
    for (uint32_t node = start; !ways[node].empty();) {
      const Way way = ways[node].back();
      ways[node].pop_back();
      const bool is_cable = way.cable != kNoCable;
      // A reference into the vector of bits: setting it marks the cable, which stands in the lists of both its ends.
      auto done = is_cable ? is_done[way.cable] : is_odd_done[node == nowhere ? way.to : node];
      if (done) {
        continue;
      }
      done = true;
      if (is_cable) {
        is_upward[way.cable] = plan.cables[way.cable].a.node == node;
      }
      node = way.to;
    }
  }
  return is_upward;
}

std::optional<uint32_t> free_port(const Plan& plan, uint32_t node) {
  std::vector<bool> is_used(plan.n_ports);
  for (const PlannedCable& cable : plan.cables) {
    for (const PlannedEnd& end : {cable.a, cable.b}) {
      if (end.node == node) {
        is_used[end.port] = true;
      }
    }
  }
  const auto found = std::ranges::find(is_used, false);
  return found == is_used.end() ? std::nullopt : std::optional(static_cast<uint32_t>(found - is_used.begin()));
}

}  // namespace

Plan make_plan(const Graph& graph, uint32_t n_ports) {
  RINGBOLT_ASSERT(graph.cables.empty() || std::ranges::max(port_counts(graph)) <= n_ports);
  Graph sorted = graph;
  sort_cables(sorted);
  Plan plan{graph.n_nodes, n_ports, {}, 0};
  for (const Cable& cable : sorted.cables) {
    PlannedCable planned{plan.next_id++, {cable.a, 0}, {cable.b, 0}, 0, cable.capacity};
    if (!plan.cables.empty()) {
      const PlannedCable& before = plan.cables.back();
      planned.rail = before.a.node == cable.a && before.b.node == cable.b ? before.rail + 1 : 0;
    }
    plan.cables.push_back(planned);
  }
  if (const std::vector<uint32_t> offsets = offsets_of(sorted); !offsets.empty()) {
    plug_by_offsets(plan, offsets);
  } else {
    plug_by_neighbours(plan);
  }
  return plan;
}

std::vector<bool> cross_ports(Plan& plan) {
  const std::vector<bool> is_upward = directions_of(plan);
  std::vector<uint32_t> n_out(plan.n_nodes);
  std::vector<uint32_t> n_in(plan.n_nodes);
  std::vector<bool> is_last_odd(plan.n_nodes, false);
  for (size_t i = 0; i < plan.cables.size(); ++i) {
    PlannedCable& cable = plan.cables[i];
    PlannedEnd& from = is_upward[i] ? cable.a : cable.b;
    PlannedEnd& to = is_upward[i] ? cable.b : cable.a;
    from.port = 2 * n_out[from.node]++ + 1;
    to.port = 2 * n_in[to.node]++;
    // One more out than there are odd ports: it takes the last even one.
    if (from.port == plan.n_ports) {
      from.port = plan.n_ports - 1;
      is_last_odd[from.node] = true;
    }
    RINGBOLT_ASSERT(from.port < plan.n_ports && to.port < plan.n_ports);
  }
  return is_last_odd;
}

std::optional<uint32_t> add_cable(Plan& plan, uint32_t a, uint32_t b, const Fraction& capacity) {
  RINGBOLT_ASSERT(a != b && a < plan.n_nodes && b < plan.n_nodes);
  const uint32_t low = std::min(a, b);
  const uint32_t high = std::max(a, b);
  // Both before anything is changed.
  const std::optional<uint32_t> low_port = free_port(plan, low);
  const std::optional<uint32_t> high_port = free_port(plan, high);
  if (!low_port || !high_port) {
    return std::nullopt;
  }
  uint32_t rail = 0;
  for (const PlannedCable& cable : plan.cables) {
    if (cable.a.node == low && cable.b.node == high) {
      rail = std::max(rail, cable.rail + 1);
    }
  }
  plan.cables.push_back({plan.next_id, {low, *low_port}, {high, *high_port}, rail, capacity});
  return plan.next_id++;
}

bool remove_cable(Plan& plan, uint32_t id) {
  return std::erase_if(plan.cables, [id](const PlannedCable& cable) { return cable.id == id; }) != 0;
}

Graph graph_of(const Plan& plan) {
  Graph graph{plan.n_nodes};
  for (const PlannedCable& cable : plan.cables) {
    join(graph, cable.a.node, cable.b.node, cable.capacity);
  }
  return graph;
}

}  // namespace ringbolt::fabric
