#include "node_choice.h"

#include "cluster_state.h"

namespace ringbolt::tools {

NodeEnvironment environment_of(const std::string& cluster, const std::string& node) {
  if (node == "local") {
    return local_environment(cluster::RuntimeDir::from_environment());
  }
  const LiveCluster live = open_cluster(cluster);
  return node_environment(live, find_node(live.model, node));
}

}  // namespace ringbolt::tools
