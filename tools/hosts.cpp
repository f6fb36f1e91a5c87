#include "hosts.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/say.h"
#include "cluster/cabling.h"
#include "cluster/cluster_file.h"
#include "failure.h"
#include "port_counts.h"
#include "stream_setup.h"

namespace ringbolt::tools {
namespace {

using Json = nlohmann::ordered_json;

/// One launch for each node, of the same words.
std::vector<Launch> launches(const cluster::Cluster& model, const std::vector<std::string>& words) {
  std::vector<Launch> all;
  for (uint32_t node = 0; node < model.nodes.size(); ++node) {
    all.push_back(node_launch(model, node, words));
  }
  return all;
}

std::vector<std::string> problems_of(const cluster::Cluster& model, const std::vector<Captured>& results) {
  std::vector<std::string> problems;
  for (size_t i = 0; i < results.size(); ++i) {
    if (std::string problem = remote_problem(host_of(model.nodes[i]), model.prefix, results[i]); !problem.empty()) {
      problems.push_back(std::move(problem));
    }
  }
  return problems;
}

/// The number after "told", wherever a login shell put its greetings.
size_t told_of(const std::string& output) {
  const size_t begin = output.rfind("{\"told\":");
  const Json json = Json::parse(begin == std::string::npos ? "" : output.substr(begin), nullptr, false);
  return json.is_object() && json["told"].is_number_unsigned() ? json["told"].get<size_t>() : 0;
}

/// The cluster, if it is one of hosts and its file can be read; its state may be stale otherwise.
std::optional<cluster::Cluster> model_of_hosts(const cluster::RuntimeDir& dir, const std::string& name) {
  try {
    cluster::Cluster model = cluster::load_cluster(dir.cluster_file(name));
    if (model.kind == cluster::Kind::hosts) {
      return model;
    }
  } catch (const base::Error& error) {
    if (!is_evidence(error.errno_value())) {
      throw;
    }
    // Then there is nobody to tell.
  }
  return std::nullopt;
}

/// Asks node nodes[i] with asked[i]; how many programs they told. Throws UsageError.
size_t ask_and_count(const cluster::Cluster& model, const std::vector<uint32_t>& nodes,
                     const std::vector<Launch>& asked, const std::vector<std::string>& inputs) {
  const std::vector<Captured> results = run_all(asked, inputs, kSshPatienceS);
  size_t told = 0;
  std::vector<std::string> problems;
  for (size_t i = 0; i < nodes.size(); ++i) {
    told += told_of(results[i].output);
    if (std::string problem = remote_problem(host_of(model.nodes[nodes[i]]), model.prefix, results[i]);
        !problem.empty()) {
      problems.push_back(std::move(problem));
    }
  }
  if (!problems.empty()) {
    refuse_with(problems);
  }
  return told;
}

}  // namespace

void make_host_nodes(const cluster::Cluster& model) {
  const std::vector<std::string> inputs(model.nodes.size(), cluster::emit_cluster(model));
  const std::vector<Captured> results = run_all(launches(model, {"host", "up"}), inputs, kSshPatienceS);
  if (const std::vector<std::string> problems = problems_of(model, results); !problems.empty()) {
    std::vector<Launch> undo;
    for (uint32_t node = 0; node < model.nodes.size(); ++node) {
      if (results[node].exit_code == 0) {
        undo.push_back(node_launch(model, node, {"host", "down", "--force"}));
      }
    }
    run_all(undo, {}, kSshPatienceS);
    refuse_with(problems);
  }
}

void remove_host_nodes(const cluster::Cluster& model, bool is_forced) {
  std::vector<std::string> words{"host", "down"};
  if (is_forced) {
    words.emplace_back("--force");
  }
  const std::vector<std::string> problems = problems_of(model, run_all(launches(model, words), {}, kSshPatienceS));
  if (!problems.empty() && !is_forced) {
    throw UsageError(fmt::format("{}\n--force takes the rest down", fmt::join(problems, "\n")));
  }
  for (const std::string& problem : problems) {
    base::say(fmt::format("ringbolt down: {}\n", problem));
  }
}

std::vector<Program> host_programs(const cluster::Cluster& model, std::vector<std::string>& problems,
                                   double timeout_s) {
  const std::vector<Captured> results = run_all(launches(model, {"host", "programs"}), {}, timeout_s);
  std::vector<Program> programs;
  for (uint32_t node = 0; node < model.nodes.size(); ++node) {
    std::ranges::move(parse_programs(results[node].output, model.nodes[node].name), std::back_inserter(programs));
  }
  for (std::string& problem : problems_of(model, results)) {
    problems.push_back(std::move(problem));
  }
  return programs;
}

std::vector<PortCounts> host_counts(const cluster::Cluster& model, std::vector<std::string>& problems) {
  const std::vector<Captured> results = run_all(launches(model, {"host", "counters"}), {}, kSshPatienceS);
  std::vector<PortCounts> ports;
  for (size_t i = 0; i < results.size(); ++i) {
    const std::string& output = results[i].output;
    const size_t begin = output.rfind("{\"ports\":");
    auto counted = parse_counts(begin == std::string::npos ? "" : output.substr(begin));
    if (counted) {
      std::move(counted->begin(), counted->end(), std::back_inserter(ports));
    } else if (results[i].exit_code == 0) {
      problems.push_back(fmt::format("{}: what it says of its counters makes no sense; use the same Ringbolt there",
                                     host_of(model.nodes[i])));
    }
  }
  for (std::string& problem : problems_of(model, results)) {
    problems.push_back(std::move(problem));
  }
  return ports;
}

void remove_whole_cluster(const cluster::RuntimeDir& dir, const std::string& name, bool is_forced) {
  if (const std::optional<cluster::Cluster> model = model_of_hosts(dir, name)) {
    remove_host_nodes(*model, is_forced);
  }
  const std::vector<std::string> problems = remove_streams(dir, name);
  if (!problems.empty() && !is_forced) {
    throw UsageError(fmt::format("{}\n--force takes the rest down", fmt::join(problems, "\n")));
  }
  for (const std::string& problem : problems) {
    base::say(fmt::format("ringbolt down: {}; try again: ringbolt down --force --cluster {}\n", problem, name));
  }
  remove_cluster(dir, name);
}

std::vector<Program> whole_cluster_programs(const cluster::RuntimeDir& dir, const std::string& name) {
  const std::optional<cluster::Cluster> model = model_of_hosts(dir, name);
  std::vector<std::string> ignored;  // whoever can't be asked can't be taken down either, and that is said then
  return model ? host_programs(*model, ignored) : cluster_programs(dir, name);
}

size_t set_host_cable(const cluster::Cluster& model, uint32_t cable, bool is_up) {
  const std::vector<std::string> words{"host", "cable", std::to_string(cable), is_up ? "--up" : "--down"};
  std::vector<uint32_t> nodes{model.cables[cable].a.node};
  if (model.cables[cable].b.node != nodes.front()) {
    nodes.push_back(model.cables[cable].b.node);
  }
  std::vector<Launch> asked;
  for (const uint32_t node : nodes) {
    asked.push_back(node_launch(model, node, words));
  }
  return ask_and_count(model, nodes, asked, {});
}

size_t set_host_faults(const cluster::Cluster& model, const std::string& plan) {
  std::vector<uint32_t> nodes(model.nodes.size());
  std::iota(nodes.begin(), nodes.end(), 0U);
  return ask_and_count(model, nodes, launches(model, {"host", "faults"}), std::vector<std::string>(nodes.size(), plan));
}

}  // namespace ringbolt::tools
