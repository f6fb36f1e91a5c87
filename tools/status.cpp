#include <fmt/format.h>
#include <fmt/ranges.h>

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "agent/agents.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/say.h"
#include "cluster_state.h"
#include "commands.h"
#include "failure.h"
#include "hosts.h"
#include "port_counts.h"
#include "programs.h"
#include "run_record.h"
#include "standing.h"
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
  std::vector<Death> deaths = {};
  std::vector<Standing> standings = {};       ///< of its programs but for agents, which are idle for long
  std::vector<agent::AgentSeen> agents = {};  ///< of its overlay, by node
  std::vector<std::string> problems = {};     ///< hosts that can't be asked, and what else can't be looked at

  const char* state() const { return live ? "up" : condition.kind == Condition::Kind::stale ? "stale" : "unknown"; }
};

void look_at_programs(Seen& seen, const cluster::RuntimeDir& dir) {
  try {
    if (seen.live && seen.live->is_remote()) {
      seen.problems.clear();
      seen.programs = host_programs(seen.live->model, seen.problems);
      return;
    }
    seen.programs = cluster_programs(dir, seen.name);
    if (seen.live) {
      add_port_uses(*seen.live, seen.programs);
    }
  } catch (const base::Error& error) {
    seen.problems.assign(1, fmt::format("which programs run can't be told: {}", error.what()));
  }
}

Seen look(const cluster::RuntimeDir& dir, const std::string& name) {
  Seen seen{name, condition_of(dir, name), std::nullopt, {}, recorded_deaths(dir, name)};
  if (seen.condition.is_whole()) {
    seen.live = open_cluster(name);
    seen.agents = agent::look_at_agents(*seen.live);
  }
  look_at_programs(seen, dir);
  return seen;
}

/// What stands still shows at a second look, some while after the first.
void look_again(std::vector<Seen>& clusters, const cluster::RuntimeDir& dir) {
  const bool is_anything_running =
      std::ranges::any_of(clusters, [](const Seen& seen) { return seen.live && !seen.programs.empty(); });
  if (!is_anything_running) {
    return;
  }
  constexpr timespec kWhile{0, 300'000'000};
  ::nanosleep(&kWhile, nullptr);
  for (Seen& seen : clusters) {
    if (seen.live) {
      const std::vector<Program> before = std::exchange(seen.programs, {});
      look_at_programs(seen, dir);
      seen.standings = standings(seen.live->model, cables_up(*seen.live), before,
                                 agent::without_agents(dir, seen.name, seen.programs), seen.deaths);
    }
  }
}

const char* cable_state(const LiveCluster& live, uint32_t cable) { return live.control.cable_up(cable) ? "up" : "cut"; }

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
                 std::to_string(std::ranges::count(cables_up(*seen.live), true)), running});
    } else {
      table.add({seen.name, "", seen.state(), "", "", "", running});
    }
  }
  table.print();
}

/// Of more cables than people read only those that need attention, unless all are asked for.
void print_cables(const LiveCluster& live, bool is_all) {
  constexpr size_t kMostCables = 100;
  const std::vector<bool> states = cables_up(live);
  const auto up = static_cast<size_t>(std::ranges::count(states, true));
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

double seconds_since(const Death& death) { return static_cast<double>(base::now_ns() - death.at_ns) / 1e9; }

/// Programs and how they fare, those that have failed too.
void print_programs(const Seen& seen) {
  if (seen.standings.empty() && seen.deaths.empty()) {
    return;
  }
  Table table("programs", {{"NODE"}, {"PID", Kind::kNumber}, {"COMMAND"}, {"STATE"}, {"WHY"}}, false);
  for (const Standing& one : seen.standings) {
    table.add(
        {one.program.node, std::to_string(one.program.pid), one.program.command, state_text(one.state), one.cause});
  }
  for (const Death& death : seen.deaths) {
    table.add({death.node, std::to_string(death.pid), death.command, "died",
               fmt::format("{} {:.0f} s ago", death.how, seconds_since(death))});
  }
  fmt::print("\n");
  std::fflush(stdout);  // libsmartcols writes through the same stream, but only after this
  table.print();
}

Json running_json(const Seen& seen) {
  Json running = Json::array();
  for (const Program& program : seen.programs) {
    Json one{{"pid", program.pid}, {"command", program.command}};
    if (!program.node.empty()) {
      one["node"] = program.node;
    }
    const auto standing = std::ranges::find_if(seen.standings, [&](const Standing& of) {
      return of.program.pid == program.pid && of.program.node == program.node;  // hosts number their processes alike
    });
    if (standing != seen.standings.end()) {
      one["state"] = state_text(standing->state);
      if (!standing->cause.empty()) {
        one["cause"] = standing->cause;
      }
    }
    running.push_back(std::move(one));
  }
  return running;
}

Json died_json(const Seen& seen) {
  Json died = Json::array();
  for (const Death& death : seen.deaths) {
    died.push_back(Json{{"node", death.node},
                        {"pid", death.pid},
                        {"command", death.command},
                        {"how", death.how},
                        {"seconds_ago", seconds_since(death)},
                        {"run_is_over", death.is_over}});
  }
  return died;
}

Json agents_json(const Seen& seen) {
  Json agents = Json::array();
  for (size_t node = 0; node < seen.agents.size(); ++node) {
    const agent::AgentSeen& one = seen.agents[node];
    Json json{{"node", seen.live->model.nodes[node].name}, {"state", "none"}};
    if (one.state != agent::AgentSeen::State::none) {
      json["state"] = one.state == agent::AgentSeen::State::runs ? "runs" : "stopped";
      json["pid"] = one.pid;
    }
    if (one.meeting) {
      json["meeting"] = *one.meeting;
    }
    agents.push_back(std::move(json));
  }
  return agents;
}

Json as_json(const Seen& seen) {
  Json json{{"cluster", seen.name}, {"state", seen.state()}};
  json["running"] = running_json(seen);
  json["died"] = died_json(seen);
  if (!seen.live) {
    json["reason"] = seen.condition.reason;
    return json;
  }
  json["kind"] = cluster::kind_text(seen.live->model.kind);
  if (!seen.agents.empty()) {
    json["agents"] = agents_json(seen);
  }
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

/// Names of the nodes whose agents are in that state.
std::vector<std::string> nodes_of(const Seen& seen, agent::AgentSeen::State state) {
  std::vector<std::string> names;
  for (size_t node = 0; node < seen.agents.size(); ++node) {
    if (seen.agents[node].state == state) {
      names.push_back(seen.live->model.nodes[node].name);
    }
  }
  return names;
}

/// Of a cluster with an overlay: which agents run, and who is away for the others.
std::string overlay_text(const Seen& seen) {
  if (seen.agents.empty()) {
    return "";
  }
  const std::vector<std::string> running = nodes_of(seen, agent::AgentSeen::State::runs);
  const size_t n = seen.agents.size();
  return fmt::format("overlay: {}\n{}",
                     running.size() == n ? fmt::format("all {} agents run", n)
                     : running.empty()
                         ? fmt::format("0 of {} agents run", n)
                         : fmt::format("{} of {} agents run: on {}", running.size(), n, fmt::join(running, ", ")),
                     agent::parts_text(*seen.live));
}

void add_overlay_problems(const Seen& seen, std::vector<std::string>& problems) {
  if (const auto none = nodes_of(seen, agent::AgentSeen::State::none); !none.empty()) {
    problems.push_back(
        fmt::format("overlay of {}: no agent runs on {}; start what is missing: ringbolt agent --start "
                    "--cluster {}",
                    seen.name, fmt::join(none, ", "), seen.name));
  }
  if (const auto stopped = nodes_of(seen, agent::AgentSeen::State::stopped); !stopped.empty()) {
    problems.push_back(
        fmt::format("overlay of {}: the agent of {} stands still, stopped by a signal or a debugger; "
                    "let it go on (kill -CONT), or end it and start another: ringbolt agent --start "
                    "--cluster {}",
                    seen.name, fmt::join(stopped, ", "), seen.name));
  }
}

void print_json(const std::vector<Seen>& clusters) {
  Json root{{"clusters", Json::array()}};
  for (const Seen& seen : clusters) {
    root["clusters"].push_back(as_json(seen));
  }
  fmt::print("{}\n", root.dump(2, ' ', false, Json::error_handler_t::replace));
}

/// What is wrong just now, on stderr, whatever the form of the output.
int report(const std::vector<Seen>& clusters) {
  std::vector<std::string> problems;
  for (const Seen& seen : clusters) {
    problems.insert(problems.end(), seen.problems.begin(), seen.problems.end());
    for (const Standing& one : seen.standings) {
      if (one.state == Standing::State::kStalled) {
        problems.push_back(standing_text(one));
      }
    }
    for (const Death& death : seen.deaths) {
      if (!death.is_over) {
        problems.push_back(death.text() + "; the others of its run go on");
      }
    }
    add_overlay_problems(seen, problems);
    if (!seen.live) {
      problems.push_back(seen.condition.text(seen.name));
    }
  }
  for (const std::string& problem : problems) {
    base::say(fmt::format("ringbolt status: {}\n", problem));
  }
  return problems.empty() ? kOk : kFoundProblem;
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
  look_again(clusters, dir);
  if (options.is_json) {
    print_json(clusters);
  } else if (clusters.empty()) {
    fmt::print("no cluster is up; make one: ringbolt up --emulate ring:4\n");
  } else {
    print_clusters(clusters);
    std::fflush(stdout);  // libsmartcols writes through the same stream, but only after this
    for (const Seen& seen : clusters) {
      fmt::print("{}", overlay_text(seen));
    }
    if (clusters.size() == 1 && clusters.front().live) {
      print_programs(clusters.front());
      fmt::print("\n");
      std::fflush(stdout);  // libsmartcols writes through the same stream, but only after this
      print_cables(*clusters.front().live, options.is_all);
    }
  }
  return report(clusters);
}

}  // namespace ringbolt::tools
