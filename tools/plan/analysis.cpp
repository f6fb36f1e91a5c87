#include "plan/analysis.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cluster_state.h"
#include "fabric/among.h"
#include "fabric/shape.h"
#include "failure.h"
#include "plan/schedules.h"

namespace ringbolt::tools::plan {
namespace {

using fabric::Discipline;

fabric::Relaying wanted_relaying(const Analysis& analysis, const std::string& routing) {
  const uint32_t worst = analysis.worst_cut.is_connected ? analysis.worst_cut.diameter : analysis.distances.diameter;
  fabric::Relaying relaying = fabric::choose_relaying(analysis.graph, worst);
  const uint32_t most_hops = worst + 2;
  if (routing == "shortest") {
    relaying = {Discipline::one_class, most_hops, 1};
  } else if (routing == "hop-classes") {
    relaying = {Discipline::hop_classes, most_hops, most_hops - 1};
  } else if (routing == "dateline") {
    relaying = {Discipline::dateline, most_hops, 2};
  } else if (routing == "up-down") {
    relaying = {Discipline::up_down, 2 * most_hops, 1};
  }
  return relaying;
}

RouteCheck check_routes(const Analysis& analysis, const std::string& routing) {
  RouteCheck check;
  check.relaying = wanted_relaying(analysis, routing);
  const fabric::Routes routes = fabric::routes_of(analysis.graph, check.relaying.discipline);
  check.use = fabric::use_of(routes);
  check.deadlock = fabric::check_deadlock(routes);
  check.is_proven = check.deadlock.is_free() && fabric::proves_freedom(check.deadlock.order, routes);
  check.routes_all = routes.size() == size_t{analysis.graph.n_nodes} * (analysis.graph.n_nodes - 1);
  check.are_short = check.use.most_hops <= check.relaying.most_hops;
  return check;
}

/// Which nodes are on the other side than node 0.
std::vector<std::string> names_apart(const Cabling& cabling, const fabric::Graph& graph) {
  std::vector<std::string> names;
  const std::vector<uint32_t> hops = fabric::hops_from(fabric::neighbours(graph), 0);
  for (uint32_t node = 0; node < graph.n_nodes; ++node) {
    if (hops[node] == fabric::kUnreachable) {
      names.push_back(cabling.node_name(node));
    }
  }
  return names;
}

/// A node with a free port on each side of a graph in parts; nothing if there is none.
std::optional<std::pair<uint32_t, uint32_t>> cable_between_parts(const Cabling& cabling, const fabric::Graph& parted,
                                                                 const fabric::Graph& whole) {
  const std::vector<uint32_t> hops = fabric::hops_from(fabric::neighbours(parted), 0);
  const std::vector<uint32_t> used = fabric::port_counts(whole);
  std::optional<uint32_t> here;
  std::optional<uint32_t> there;
  for (uint32_t node = 0; node < whole.n_nodes; ++node) {
    if (used[node] < cabling.model.nodes[node].ports.size()) {
      std::optional<uint32_t>& side = hops[node] == fabric::kUnreachable ? there : here;
      side = side && used[*side] <= used[node] ? *side : node;
    }
  }
  return here && there ? std::optional(std::pair(*here, *there)) : std::nullopt;
}

std::string remedy(const Cabling& cabling, const fabric::Graph& parted, const fabric::Graph& whole) {
  const auto ends = cable_between_parts(cabling, parted, whole);
  return ends ? fmt::format("add a cable between {} and {}", cabling.node_name(ends->first),
                            cabling.node_name(ends->second))
              : std::string("there are no free ports for another cable between the two sides");
}

void note_bridges(const Cabling& cabling, Analysis& analysis) {
  for (size_t index = 0; index < analysis.cuts.size(); ++index) {
    if (!analysis.cuts[index].is_connected) {
      const fabric::PlannedCable& cable = cabling.plan.cables[index];
      analysis.notes.push_back(fmt::format(
          "cutting cable {} ({}-{}) parts the nodes: {}", cable.id, cabling.end_text(cable.a),
          cabling.end_text(cable.b), remedy(cabling, fabric::without_cable(analysis.graph, index), analysis.graph)));
      return;  // one is enough: of a line each is such a cable
    }
  }
}

/// Of a cabling that was not chosen here: what the same machines could have.
void note_better(const Cabling& cabling, Analysis& analysis) {
  const uint32_t n_ports = analysis.n_ports;
  const bool have_so_many =
      std::ranges::all_of(cabling.model.nodes, [&](const cluster::Node& node) { return node.ports.size() >= n_ports; });
  if (cabling.is_best || !have_so_many) {
    return;
  }
  const auto best = fabric::best_shape(cabling.n_nodes(), n_ports);
  if (!best) {
    return;
  }
  const fabric::Distances there = fabric::distances(best->graph);
  const fabric::Distances& here = analysis.distances;
  if (std::pair(there.diameter, there.sum) < std::pair(here.diameter, here.sum)) {
    analysis.notes.push_back(
        fmt::format("{} nodes of {} ports can be nearer: {} hop{} at most and {:.3f} on average, not {} and {:.3f}; "
                    "see ringbolt plan --nodes {} --ports {}",
                    cabling.n_nodes(), n_ports, there.diameter, there.diameter == 1 ? "" : "s",
                    there.aspl(cabling.n_nodes()).value(), here.diameter, here.aspl(cabling.n_nodes()).value(),
                    cabling.n_nodes(), n_ports));
  }
}

/// Whether the nodes are near enough for a group, and remain so.
void judge_as_group(Analysis& analysis) {
  using fabric::kMostHopsOfGroup;
  const uint32_t worst = analysis.worst_cut.diameter;  // of the cuts that part nothing
  analysis.can_be_group = analysis.distances.diameter <= kMostHopsOfGroup;
  if (!analysis.cuts.empty()) {
    analysis.can_lose_any_cable = analysis.worst_cut.is_connected && worst <= kMostHopsOfGroup;
  }
  if (!analysis.can_be_group) {
    analysis.notes.push_back(
        fmt::format("groups of libringbolt relay over at most {} hops, and nodes here are {} apart: these cannot form "
                    "one; give them more ports",
                    kMostHopsOfGroup, analysis.distances.diameter));
  } else if (worst > kMostHopsOfGroup) {
    analysis.notes.push_back(
        fmt::format("groups of libringbolt relay over at most {} hops, and a cut of one cable can leave nodes here {} "
                    "apart: these form one, but after such a cut some no longer reach each other; give them more ports",
                    kMostHopsOfGroup, worst));
  }
}

/// Where a schedule that could be faster was left out, because it takes long to compute.
void note_untried(const collective::Topology& topology, Analysis& analysis) {
  constexpr double kNear = 1.1;
  const PlannedCall& long_one =
      call_of(analysis.calls, collective::Operation::all_gather, *std::ranges::rbegin(kPredictedBytes));
  if (!topology.can_pack_from_all() && long_one.times_bound() > kNear) {
    analysis.notes.push_back(
        "no packed trees were tried for all_gather and reduce_scatter: they could be faster than the times here");
  }
}

void report_check(const Cabling& cabling, Analysis& analysis) {
  const RouteCheck& check = *analysis.check;
  if (!check.deadlock.is_free()) {
    analysis.problems.push_back(fmt::format("routes ({}) can wait for each other in a circle: {}",
                                            fabric::discipline_text(check.relaying.discipline),
                                            channels_text(cabling, check.deadlock.cycle)));
  } else if (!check.is_good()) {
    analysis.problems.push_back(fmt::format(
        "routes ({}): {} hops at most where {} are allowed{}", fabric::discipline_text(check.relaying.discipline),
        check.use.most_hops, check.relaying.most_hops, check.routes_all ? "" : ", and not every pair has one"));
  }
}

using collective::Operation;

void measure_hops(const fabric::Graph& graph, RelayPlan& plan) {
  const auto neighbours = fabric::neighbours(graph);
  uint64_t sum = 0;
  for (const uint32_t from : plan.members) {
    const std::vector<uint32_t> hops = fabric::hops_from(neighbours, from);
    for (const uint32_t to : plan.members) {
      plan.diameter = std::max(plan.diameter, hops[to]);
      sum += hops[to];
    }
  }
  const auto n = static_cast<double>(plan.members.size());
  plan.average_hops = static_cast<double>(sum) / (n * (n - 1));
}

}  // namespace

std::string channels_text(const Cabling& cabling, const std::vector<fabric::Channel>& channels) {
  std::string text;
  for (const fabric::Channel& channel : channels) {
    const auto cable = std::ranges::find_if(cabling.plan.cables, [&](const fabric::PlannedCable& one) {
      return one.a.node == std::min(channel.from, channel.to) && one.b.node == std::max(channel.from, channel.to);
    });
    text += fmt::format("{} -> {} (cable {}{}){}", cabling.node_name(channel.from), cabling.node_name(channel.to),
                        cable->id, channel.buffer_class == 0 ? "" : fmt::format(", class {}", channel.buffer_class),
                        &channel == &channels.back() ? "" : ", ");
  }
  return text;
}

Analysis analyse(const Cabling& cabling, const PlanOptions& options) {
  Analysis analysis;
  analysis.graph = fabric::graph_of(cabling.plan);
  const fabric::Graph& graph = analysis.graph;
  analysis.notes = cabling.oddities;
  analysis.distances = fabric::distances(graph);
  if (!options.relays.empty()) {
    analysis.group = relay_plan(cabling, options);
  }
  if (!analysis.distances.is_connected) {
    const std::vector<std::string> apart = names_apart(cabling, graph);
    analysis.problems.push_back(fmt::format("no path joins {} with {}: {}", cabling.node_name(0),
                                            fmt::join(apart, ", "), remedy(cabling, graph, graph)));
    return analysis;
  }
  analysis.n_ports = cabling.is_given ? std::ranges::max(fabric::port_counts(graph)) : cabling.plan.n_ports;
  analysis.moore = fabric::moore_bound(cabling.n_nodes(), analysis.n_ports);
  if (analysis.group) {
    predict_group(*analysis.group, cabling, graph, options);
  }
  const bool is_small = cabling.n_nodes() <= kMostAnalysedNodes;
  if (options.routing == "dateline" &&
      fabric::choose_relaying(graph, UINT32_MAX / 4).discipline != Discipline::dateline) {
    throw UsageError("--routing dateline is for rings of 5 nodes and more that are cabled in their order");
  }
  if (is_small) {
    analysis.cuts = fabric::costs_of_cuts(graph);
    analysis.worst_cut = fabric::worst_of(analysis.cuts);
    analysis.has_cut_rates = fabric::has_cut_rates(graph);
    if (!analysis.has_cut_rates) {
      analysis.notes.push_back(fmt::format(
          "what a cut costs in rates is not computed: {} cables times {} nodes are more than {}, only hops are",
          graph.cables.size(), graph.n_nodes, fabric::kMostCutWork));
    }
    analysis.rates = {fabric::edge_connectivity(graph), fabric::shard_rate(graph),       fabric::tree_rate(graph),
                      fabric::pair_rate_bound(graph),   fabric::equal_split_rate(graph), fabric::bisection(graph)};
    const collective::Topology topology(graph, {options.alpha_us, cabling.unit_gbps * 125.0, 0});
    analysis.calls = planned_calls(analysis, topology);
    note_untried(topology, analysis);
    note_bridges(cabling, analysis);
    note_better(cabling, analysis);
  }
  judge_as_group(analysis);
  if (is_small || options.is_checked) {
    analysis.check = check_routes(analysis, options.routing);
    report_check(cabling, analysis);
  }
  if (!is_small) {
    analysis.notes.push_back(fmt::format("rates, times{} are not computed above {} nodes{}",
                                         options.is_checked ? " and cuts" : ", cuts and routes", kMostAnalysedNodes,
                                         options.is_checked ? "" : " (routes with --check)"));
  }
  return analysis;
}

RelayPlan relay_plan(const Cabling& cabling, const PlanOptions& options) {
  RelayPlan plan;
  for (const std::string& name : options.relays) {
    plan.relays.push_back(find_node(cabling.model, name));
  }
  std::ranges::sort(plan.relays);
  plan.relays.erase(std::unique(plan.relays.begin(), plan.relays.end()), plan.relays.end());
  for (uint32_t node = 0; node < cabling.n_nodes(); ++node) {
    if (!std::ranges::binary_search(plan.relays, node)) {
      plan.members.push_back(node);
    }
  }
  if (plan.members.size() < 2) {
    throw UsageError(
        fmt::format("--relays leaves {} of {} nodes: a group needs two", plan.members.size(), cabling.n_nodes()));
  }
  return plan;
}

void predict_group(RelayPlan& plan, const Cabling& cabling, const fabric::Graph& graph, const PlanOptions& options) {
  measure_hops(graph, plan);
  const collective::Topology topology(fabric::graph_among(graph, plan.members),
                                      {options.alpha_us, cabling.unit_gbps * 125.0, 0});
  constexpr std::array<std::pair<const char*, Operation>, 4> kCalls = {{{"all_reduce", Operation::all_reduce},
                                                                        {"all_gather", Operation::all_gather},
                                                                        {"broadcast", Operation::broadcast},
                                                                        {"all_to_all", Operation::all_to_all}}};
  for (const auto& [name, operation] : kCalls) {
    for (const double bytes : kPredictedBytes) {
      plan.calls.push_back(
          {name, bytes,
           collective::choose(problem_of(operation, false, topology.n_ranks(), bytes), topology, {}).front()});
    }
  }
}

std::string names_text(const Cabling& cabling, const std::vector<uint32_t>& nodes) {
  std::string text;
  for (const uint32_t node : nodes) {
    text += (text.empty() ? "" : ", ") + cabling.node_name(node);
  }
  return text;
}

}  // namespace ringbolt::tools::plan
