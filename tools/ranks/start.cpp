#include "ranks/start.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "cluster/address_plan.h"
#include "cluster_state.h"
#include "commands.h"
#include "node_environment.h"
#include "progress_line.h"
#include "ranks/meeting.h"

namespace ringbolt::tools::ranks {
namespace {

/// Without a cluster, a process may be meant to be a rank by variables that say too little: then their fault is told.
void refuse_half_a_rank() {
  const bootstrap::Environment environment = bootstrap::environment_of_process();
  const bool says_something = std::ranges::any_of(environment, [](const auto& variable) {
    const bool is_number = variable.first.ends_with("RANK") || variable.first.ends_with("SIZE");
    return is_number && bootstrap::is_of_launcher(variable.first);
  });
  if (says_something && cluster_names(cluster::RuntimeDir::from_environment()).empty()) {
    (void)bootstrap::config_from(environment, bootstrap::read_file);
  }
}

}  // namespace

bool is_rank(const bootstrap::Environment& environment) {
  const auto value = [&environment](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string() : found->second;
  };
  // The last stands for a shell on a node, too: `ringbolt env`.
  constexpr std::array kNames{"RINGBOLT_RANK", "RANK",     "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK",
                              "JACCL_RANK",    "MLX_RANK", "RINGBOLT_NODE"};
  const std::string step = value("SLURM_STEP_NUM_TASKS");
  const bool is_only_task = (step.empty() ? value("SLURM_NTASKS") : step) == "1";
  const bool is_slurms = !value("SLURM_PROCID").empty();
  return std::any_of(kNames.begin(), kNames.end(),
                     [&](const std::string& name) {
                       // srun says these, too.
                       const bool is_of_task = is_slurms && is_only_task && name.rfind("PMI", 0) == 0;
                       return !value(name.c_str()).empty() && !is_of_task;
                     }) ||
         (is_slurms && !is_only_task);
}

void take_rank(bootstrap::Environment& environment, uint32_t rank, uint32_t n_ranks, uint32_t first_node) {
  environment["RINGBOLT_RANK"] = std::to_string(rank);
  environment["RINGBOLT_WORLD_SIZE"] = std::to_string(n_ranks);
  if (environment.contains("RINGBOLT_MEETING_HOST")) {
    environment["RINGBOLT_MEETING_HOST"] = cluster::management_address(first_node).text();
  }
}

int run_on_all_nodes(const std::string& cluster, std::vector<std::string> words, std::optional<double> timeout_s) {
  if (cluster.empty()) {
    refuse_half_a_rank();
  }
  const LiveCluster live = open_cluster(cluster);
  prepare_meeting();
  RunOptions run_options;
  run_options.cluster = live.model.name;
  run_options.is_untagged = true;  // rank 0 prints one table; who else says something names its rank
  run_options.timeout_s = timeout_s;
  run_options.shows_progress = Progress::usual() == Progress::Style::kTerminal;
  const bool is_elsewhere = live.is_remote() && !live.model.prefix.empty();
  run_options.command = {(is_elsewhere ? live.model.prefix : own_prefix()) + "/bin/ringbolt"};
  run_options.command.insert(run_options.command.end(), std::make_move_iterator(words.begin()),
                             std::make_move_iterator(words.end()));
  run_options.command.insert(run_options.command.end(), {"--as-rank", "--of", std::to_string(live.model.nodes.size())});
  if (run_options.shows_progress) {
    run_options.command.emplace_back("--tell-progress");
  }
  return run(run_options);
}

}  // namespace ringbolt::tools::ranks
