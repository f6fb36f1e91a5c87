#include "ranks/start.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "cluster_state.h"
#include "commands.h"
#include "node_environment.h"

namespace ringbolt::tools::ranks {

bool is_rank() {
  // The last stands for a shell on a node, too: `ringbolt env`.
  constexpr std::array kNames{"RINGBOLT_RANK", "RANK",     "OMPI_COMM_WORLD_RANK", "PMI_RANK",     "PMIX_RANK",
                              "JACCL_RANK",    "MLX_RANK", "SLURM_PROCID",         "RINGBOLT_NODE"};
  return std::any_of(kNames.begin(), kNames.end(), [](const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && *value != '\0';
  });
}

int run_on_all_nodes(const std::string& cluster, std::vector<std::string> words, std::optional<double> timeout_s) {
  const LiveCluster live = open_cluster(cluster);
  RunOptions run_options;
  run_options.cluster = live.model.name;
  run_options.is_untagged = true;  // rank 0 prints one table; who else says something names its rank
  run_options.timeout_s = timeout_s;
  const bool is_elsewhere = live.is_remote() && !live.model.prefix.empty();
  run_options.command = {(is_elsewhere ? live.model.prefix : own_prefix()) + "/bin/ringbolt"};
  run_options.command.insert(run_options.command.end(), std::make_move_iterator(words.begin()),
                             std::make_move_iterator(words.end()));
  run_options.command.emplace_back("--as-rank");
  return run(run_options);
}

}  // namespace ringbolt::tools::ranks
