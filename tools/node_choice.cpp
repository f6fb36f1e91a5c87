#include "node_choice.h"

#include <fmt/format.h>

#include "cluster_state.h"
#include "failure.h"

namespace ringbolt::tools {

NodeEnvironment environment_of(const std::string& cluster, const std::string& node) {
  if (node == "local") {
    return local_environment(cluster::RuntimeDir::from_environment());
  }
  const LiveCluster live = open_cluster(cluster);
  const uint32_t number = find_node(live.model, node);
  if (live.is_remote()) {
    throw UsageError(fmt::format("node {} is another machine; start programs there with ringbolt run or exec",
                                 live.model.nodes[number].name));
  }
  return node_environment(live, number);
}

}  // namespace ringbolt::tools
