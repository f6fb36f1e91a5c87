#include "doctor/plan.h"

#include "cabling_file.h"
#include "cluster/cabling.h"

namespace ringbolt::tools::doctor {

std::optional<cluster::Cluster> planned_cluster(const std::string& text) {
  try {
    return parse_cabling("the plan", text);
  } catch (const std::exception&) {
    // Then it has no cables, or is no plan.
  }
  cluster::Cluster model;
  for (const bootstrap::MlxHost& one : hosts_in_hostfile(text)) {
    model.nodes.push_back({one.ssh.substr(one.ssh.find('@') + 1), {}, one.ssh});  // npos + 1 is 0
  }
  return model.nodes.empty() ? std::nullopt : std::optional(model);
}

std::vector<bootstrap::MlxHost> hosts_in_hostfile(const std::string& text) {
  const auto file = bootstrap::parse_mlx_hostfile(text);
  return file ? file->hosts : std::vector<bootstrap::MlxHost>{};
}

}  // namespace ringbolt::tools::doctor
