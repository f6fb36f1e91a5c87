#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "agent/agents.h"
#include "base/error.h"
#include "base/say.h"
#include "cluster_state.h"
#include "commands.h"
#include "failure.h"
#include "hosts.h"
#include "programs.h"
#include "table.h"

namespace ringbolt::tools {
namespace {

using Json = nlohmann::ordered_json;
using Kind = Table::Kind;

/// One cluster as `status` sees it.
struct Seen {
  std::string name;
  Condition condition;
  std::optional<LiveCluster> live;  ///< of a cluster that is up
  std::vector<Program> programs = {};
  std::vector<std::string> problems = {};  ///< hosts that can't be asked, and what else can't be looked at

  const char* state() const { return live ? "up" : condition.kind == Condition::Kind::stale ? "stale" : "unknown"; }
};

Seen look(const cluster::RuntimeDir& dir, const std::string& name) {
  Seen seen{name, condition_of(dir, name), std::nullopt};
  if (seen.condition.is_whole()) {
    seen.live = open_cluster(name);
  }
  try {
    seen.programs = seen.live && seen.live->is_remote() ? host_programs(seen.live->model, seen.problems)
                                                        : cluster_programs(dir, name);
  } catch (const base::Error& error) {
    seen.problems.push_back(fmt::format("which programs run can't be told: {}", error.what()));
  }
  return seen;
}

const char* cable_state(const LiveCluster& live, uint32_t cable) { return live.control.cable_up(cable) ? "up" : "cut"; }

size_t cables_up(const LiveCluster& live) {
  size_t count = 0;
  for (uint32_t cable = 0; cable < live.control.n_cables(); ++cable) {
    count += live.control.cable_up(cable) ? 1U : 0U;
  }
  return count;
}

void print_clusters(const std::vector<Seen>& clusters) {
  Table table("clusters",
              {{"CLUSTER"},
               {"KIND"},
               {"STATE"},
               {"NODES", Kind::kNumber},
               {"CABLES", Kind::kNumber},
               {"CABLES_UP", Kind::kNumber},
               {"RUNNING"}},
              false);
  for (const Seen& seen : clusters) {
    const std::string running = list_programs(seen.programs);
    if (seen.live) {
      table.add({seen.name, cluster::kind_text(seen.live->model.kind), "up",
                 std::to_string(seen.live->model.nodes.size()), std::to_string(seen.live->model.cables.size()),
                 std::to_string(cables_up(*seen.live)), running});
    } else {
      table.add({seen.name, "", seen.state(), "", "", "", running});
    }
  }
  table.print();
}

/// Of more cables than people read only those that need attention, unless all are asked for.
void print_cables(const LiveCluster& live, bool is_all) {
  constexpr size_t kMostCables = 100;
  const size_t up = cables_up(live);
  const bool is_short = !is_all && live.model.cables.size() > kMostCables;
  if (is_short) {
    fmt::print("{} of {} cables are up and not listed here: ringbolt status --all lists them\n", up,
               live.model.cables.size());
    std::fflush(stdout);
    if (up == live.model.cables.size()) {
      return;
    }
  }
  Table table("cables", {{"CABLE", Kind::kNumber}, {"A"}, {"B"}, {"SPEED_GBPS", Kind::kNumber}, {"STATE"}}, false);
  for (uint32_t index = 0; index < live.model.cables.size(); ++index) {
    const cluster::Cable& cable = live.model.cables[index];
    if (is_short && live.control.cable_up(index)) {
      continue;
    }
    table.add({std::to_string(index), cluster::end_text(live.model, cable.a), cluster::end_text(live.model, cable.b),
               std::to_string(cable.speed_gbps), cable_state(live, index)});
  }
  table.print();
}

Json as_json(const Seen& seen) {
  Json json{{"cluster", seen.name}, {"state", seen.state()}};
  json["running"] = Json::array();
  for (const Program& program : seen.programs) {
    json["running"].push_back(Json{{"pid", program.pid}, {"command", program.command}});
    if (!program.node.empty()) {
      json["running"].back()["node"] = program.node;
    }
  }
  if (!seen.live) {
    json["reason"] = seen.condition.reason;
    return json;
  }
  json["kind"] = cluster::kind_text(seen.live->model.kind);
  json["nodes"] = Json::array();
  for (const cluster::Node& node : seen.live->model.nodes) {
    Json ports = Json::array();
    for (const cluster::Port& port : node.ports) {
      ports.push_back(port.name);
    }
    json["nodes"].push_back(Json{{"name", node.name}, {"ports", std::move(ports)}});
  }
  json["cables"] = Json::array();
  for (uint32_t index = 0; index < seen.live->model.cables.size(); ++index) {
    const cluster::Cable& cable = seen.live->model.cables[index];
    json["cables"].push_back(Json{{"cable", index},
                                  {"a", cluster::end_text(seen.live->model, cable.a)},
                                  {"b", cluster::end_text(seen.live->model, cable.b)},
                                  {"speed_gbps", cable.speed_gbps},
                                  {"state", cable_state(*seen.live, index)}});
  }
  return json;
}

/// Agents that are missing; empty: none.
std::string overlay_text(const LiveCluster& live) {
  const size_t n_agents = live.model.has_overlay ? agent::count_agents(live) : live.model.nodes.size();
  return n_agents == live.model.nodes.size()
             ? ""
             : fmt::format("overlay: {} of {} agents run; start the others: ringbolt agent --start --cluster {}\n",
                           n_agents, live.model.nodes.size(), live.model.name);
}

void print_json(const std::vector<Seen>& clusters) {
  Json root{{"clusters", Json::array()}};
  for (const Seen& seen : clusters) {
    root["clusters"].push_back(as_json(seen));
  }
  fmt::print("{}\n", root.dump(2, ' ', false, Json::error_handler_t::replace));
}

}  // namespace

int status(const ListOptions& options) {
  const cluster::RuntimeDir dir = cluster::RuntimeDir::from_environment();
  std::vector<Seen> clusters;
  if (!options.cluster.empty()) {
    clusters.push_back(look(dir, choose_cluster(dir, options.cluster)));
  } else {
    for (const std::string& name : cluster_names(dir)) {
      clusters.push_back(look(dir, name));
    }
  }
  if (options.is_json) {
    print_json(clusters);
  } else if (clusters.empty()) {
    fmt::print("no cluster is up; make one: ringbolt up --emulate ring:4\n");
  } else {
    print_clusters(clusters);
    std::fflush(stdout);  // libsmartcols writes through the same stream, but only after this
    for (const Seen& seen : clusters) {
      fmt::print("{}", seen.live ? overlay_text(*seen.live) : "");
    }
    if (clusters.size() == 1 && clusters.front().live) {
      fmt::print("\n");
      std::fflush(stdout);  // libsmartcols writes through the same stream, but only after this
      print_cables(*clusters.front().live, options.is_all);
    }
  }
  int answer = kOk;
  for (const Seen& seen : clusters) {
    for (const std::string& problem : seen.problems) {
      base::say(fmt::format("ringbolt status: {}\n", problem));
      answer = kFoundProblem;
    }
    if (!seen.live) {
      base::say(fmt::format("ringbolt status: {}\n", seen.condition.text(seen.name)));
      answer = kFoundProblem;
    }
  }
  return answer;
}

}  // namespace ringbolt::tools
