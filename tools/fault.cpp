#include <fmt/format.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "cluster/read_file.h"
#include "cluster_state.h"
#include "commands.h"
#include "failure.h"
#include "fault/plan_text.h"
#include "fault_file.h"
#include "hosts.h"

namespace ringbolt::tools {
namespace {

/// Here, or on all machines of the cluster and then here.
void apply(LiveCluster& live, const fault::Plan& plan, const std::string& what) {
  size_t told = live.is_remote() ? set_host_faults(live.model, fault::emit_plan(plan)) : 0;
  told += store_faults(live, plan);
  fmt::print("{}; {} running program{} told\n", what, told, told == 1 ? "" : "s");
}

std::string joined(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, " ")); }

fault::Plan without(const fault::Plan& plan, const std::vector<uint32_t>& numbers) {
  for (const uint32_t number : numbers) {
    if (number < 1 || number > plan.rules.size()) {
      throw UsageError(fmt::format("there is no fault {}; ringbolt fault list shows {}", number,
                                   plan.rules.empty() ? "that there are none" : "their numbers"));
    }
  }
  fault::Plan rest;
  for (uint32_t i = 0; i < plan.rules.size(); ++i) {
    if (std::ranges::find(numbers, i + 1) == numbers.end()) {
      rest.rules.push_back(plan.rules[i]);
    }
  }
  return rest;
}

}  // namespace

int fault_add(const FaultOptions& options) {
  if (options.words.empty() == options.file.empty()) {
    throw UsageError("give a fault, as in: ringbolt fault add loss 1%; or --file");
  }
  LiveCluster live = open_cluster(options.cluster);
  const std::string text =
      options.file.empty() ? joined(options.words) : cluster::read_file(options.file, fault::kMaxPlanBytes);
  const fault::Plan more = read_faults(live, text);
  const base::UniqueFd lock = lock_clusters(live.dir);
  fault::Plan plan = load_faults(live.dir, live.model.name);
  plan.rules.insert(plan.rules.end(), more.rules.begin(), more.rules.end());
  if (plan.rules.size() > fault::Plan::kMaxRules) {
    throw UsageError(fmt::format("{} faults are more than a cluster's {}", plan.rules.size(), fault::Plan::kMaxRules));
  }
  std::string what;
  for (const fault::Rule& rule : more.rules) {
    what += (what.empty() ? "added " : ", ") + fault::emit_rule(rule);
  }
  apply(live, plan, what.empty() ? "added nothing" : what);
  return kOk;
}

int fault_list(const FaultOptions& options) {
  const LiveCluster live = open_cluster(options.cluster);
  const fault::Plan plan = load_faults(live.dir, live.model.name);
  if (options.is_json) {
    nlohmann::ordered_json root{{"faults", nlohmann::ordered_json::array()}};
    for (const fault::Rule& rule : plan.rules) {
      root["faults"].push_back({{"number", root["faults"].size() + 1}, {"fault", fault::emit_rule(rule)}});
    }
    fmt::print("{}\n", root.dump(2));
    return kOk;
  }
  for (size_t i = 0; i < plan.rules.size(); ++i) {
    fmt::print("{:3}  {}\n", i + 1, fault::emit_rule(plan.rules[i]));
  }
  if (plan.rules.empty()) {
    fmt::print("cluster \"{}\" has no faults\n", live.model.name);
  }
  return kOk;
}

int fault_clear(const FaultOptions& options) {
  LiveCluster live = open_cluster(options.cluster);
  const base::UniqueFd lock = lock_clusters(live.dir);
  // All of them: also those of a file that can't be read.
  const fault::Plan rest =
      options.numbers.empty() ? fault::Plan{} : without(load_faults(live.dir, live.model.name), options.numbers);
  apply(live, rest,
        rest.rules.empty()
            ? "no faults are left"
            : fmt::format("{} fault{} left", rest.rules.size(), rest.rules.size() == 1 ? " is" : "s are"));
  return kOk;
}

}  // namespace ringbolt::tools
