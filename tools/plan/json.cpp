#include "collective/layout.h"
#include "plan/report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace ringbolt::tools::plan {
namespace {

using Json = nlohmann::ordered_json;
using fabric::Fraction;
using fabric::PlannedCable;

Json rate_json(const Fraction& rate, const Cabling& cabling) {
  return {{"cables", rate.text()}, {"gbps", rate.value() * cabling.unit_gbps}};
}

Json nodes_json(const Cabling& cabling) {
  Json nodes = Json::array();
  for (uint32_t node = 0; node < cabling.n_nodes(); ++node) {
    nodes.push_back({{"node", node},
                     {"name", cabling.node_name(node)},
                     {"address", fabric::address_text(fabric::node_address(cabling.pool, node)) + "/32"}});
  }
  return nodes;
}

Json cables_json(const Cabling& cabling, const Analysis& analysis) {
  Json cables = Json::array();
  for (size_t index = 0; index < cabling.plan.cables.size(); ++index) {
    const PlannedCable& cable = cabling.plan.cables[index];
    Json json{{"id", cable.id},
              {"between", {cabling.end_text(cable.a), cabling.end_text(cable.b)}},
              {"rail", cable.rail},
              {"speed_gbps", cabling.speed_gbps(cable)},
              {"subnet", fmt::format("{}/{}", fabric::address_text(fabric::subnet_of(cabling.pool, cable.id)),
                                     cabling.pool.prefix_length)},
              {"addresses",
               {fabric::address_text(fabric::end_address(cabling.pool, cable.id, true)),
                fabric::address_text(fabric::end_address(cabling.pool, cable.id, false))}}};
    if (!analysis.cuts.empty()) {
      const fabric::CutCost& cut = analysis.cuts[index];
      json["cut"] = {{"is_connected", cut.is_connected}};
      if (cut.is_connected) {
        json["cut"]["diameter"] = cut.diameter;
      }
      if (cut.is_connected && analysis.has_cut_rates) {
        json["cut"]["all_reduce"] = rate_json(cut.tree_rate, cabling);
        json["cut"]["broadcast"] = rate_json(cut.lambda, cabling);
        json["cut"]["all_gather"] = rate_json(Fraction(cabling.n_nodes()) * cut.shard_rate, cabling);
      }
    }
    cables.push_back(std::move(json));
  }
  return cables;
}

Json distances_json(const Cabling& cabling, const Analysis& analysis) {
  const Fraction pairs = Fraction(cabling.n_nodes()) * Fraction(cabling.n_nodes() - 1);
  Json json{
      {"diameter", analysis.distances.diameter},   {"average", analysis.distances.aspl(cabling.n_nodes()).value()},
      {"least_diameter", analysis.moore.diameter}, {"least_average", (Fraction(analysis.moore.sum) / pairs).value()},
      {"most_of_group", fabric::kMostHopsOfGroup}, {"can_be_group", analysis.can_be_group}};
  if (analysis.can_lose_any_cable) {
    json["can_be_group_after_cut"] = *analysis.can_lose_any_cable;
  }
  return json;
}

Json rates_json(const Cabling& cabling, const Rates& rates) {
  Json json{{"all_reduce", rate_json(rates.tree_rate, cabling)},
            {"all_gather", rate_json(Fraction(cabling.n_nodes()) * rates.shard_rate, cabling)},
            {"broadcast", rate_json(rates.lambda, cabling)},
            {"all_to_all_pair", rate_json(rates.pair_bound.bound, cabling)},
            {"bisection", rate_json(rates.bisection.rate, cabling)}};
  json["all_to_all_pair"]["has_all_cuts"] = rates.pair_bound.has_all_cuts;
  json["all_to_all_pair"]["shortest_paths_gbps"] = rates.pair_split.value * cabling.unit_gbps;
  json["bisection"]["is_exact"] = rates.bisection.is_exact;
  return json;
}

Json times_json(const std::vector<PlannedCall>& calls) {
  using collective::Operation;
  Json rows = Json::array();
  for (const double bytes : kPredictedBytes) {
    Json row{{"bytes", static_cast<uint64_t>(bytes)}};
    for (const Operation operation :
         {Operation::all_reduce, Operation::all_gather, Operation::broadcast, Operation::all_to_all}) {
      const PlannedCall& call = call_of(calls, operation, bytes);
      row[call.name()] = {{"us", call.choice.predicted_us}, {"by", call.choice.name}};
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

Json explained_json(const std::vector<PlannedCall>& calls) {
  Json rows = Json::array();
  for (const PlannedCall& call : calls) {
    Json row{{"operation", collective::operation_text(call.operation)},
             {"in_order", call.is_in_order},
             {"bytes", static_cast<uint64_t>(call.bytes)},
             {"algorithm", call.choice.name},
             {"time_us", call.choice.predicted_us},
             {"bound_us", call.bound_us},
             {"times_bound", call.times_bound()}};
    if (call.next_best) {
      row["next_best"] = {{"algorithm", call.next_best->name}, {"time_us", call.next_best->predicted_us}};
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

Json channels_json(const Cabling& cabling, const std::vector<fabric::Channel>& channels) {
  Json list = Json::array();
  for (const fabric::Channel& channel : channels) {
    list.push_back({cabling.node_name(channel.from), cabling.node_name(channel.to), channel.buffer_class});
  }
  return list;
}

Json routes_json(const Cabling& cabling, const RouteCheck& check, bool has_order) {
  Json json{{"discipline", fabric::discipline_text(check.relaying.discipline)},
            {"relay_classes", check.relaying.n_relay_classes},
            {"most_hops", check.use.most_hops},
            {"allowed_hops", check.relaying.most_hops},
            {"dependencies", check.deadlock.n_arcs},
            {"is_free_of_deadlock", check.deadlock.is_free()},
            {"cycle", channels_json(cabling, check.deadlock.cycle)}};
  if (has_order) {
    json["order"] = channels_json(cabling, check.deadlock.order);
  }
  return json;
}

Json group_json(const Cabling& cabling, const RelayPlan& plan) {
  Json group{{"relays", Json::array()},
             {"nodes", Json::array()},
             {"diameter", plan.diameter},
             {"average_hops", plan.average_hops},
             {"times", Json::array()}};
  for (const uint32_t node : plan.relays) {
    group["relays"].push_back(cabling.node_name(node));
  }
  for (const uint32_t node : plan.members) {
    group["nodes"].push_back(cabling.node_name(node));
  }
  for (const RelayPlan::Call& call : plan.calls) {
    group["times"].push_back(Json{{"collective", call.name},
                                  {"bytes", call.bytes},
                                  {"schedule", call.choice.name},
                                  {"time_us", call.choice.predicted_us}});
  }
  return group;
}

}  // namespace

void print_json(const Cabling& cabling, const Analysis& analysis, const PlanOptions& options) {
  Json root{{"shape", cabling.shape},
            {"origin", cabling.origin},
            {"ports", cabling.plan.n_ports},
            {"unit_gbps", cabling.unit_gbps},
            {"is_connected", analysis.distances.is_connected},
            {"nodes", nodes_json(cabling)},
            {"cables", cables_json(cabling, analysis)}};
  if (analysis.distances.is_connected) {
    root["hops"] = distances_json(cabling, analysis);
  }
  if (analysis.rates) {
    root["rates"] = rates_json(cabling, *analysis.rates);
    root["predicted"] = {{"alpha_us", options.alpha_us}, {"times", times_json(analysis.calls)}};
    if (options.explains) {
      root["explained"] = explained_json(analysis.calls);
    }
  }
  if (analysis.group && analysis.distances.is_connected) {
    root["group"] = group_json(cabling, *analysis.group);
  }
  if (analysis.check) {
    root["routes"] = routes_json(cabling, *analysis.check, options.is_checked);
  }
  root["notes"] = analysis.notes;
  root["problems"] = analysis.problems;
  fmt::print("{}\n", root.dump(2, ' ', false, Json::error_handler_t::replace));
}

}  // namespace ringbolt::tools::plan
