#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bootstrap/mlx_hostfile.h"
#include "cluster/model.h"

namespace ringbolt::tools::doctor {

/// The machines and cables of a cluster file, or of a hostfile of MLX or JACCL; one without devices has no cables.
/// Nothing if the text is neither.
std::optional<cluster::Cluster> planned_cluster(const std::string& text);

/// The hosts of MLX's hostfile, of either version; none if the text is something else.
std::vector<bootstrap::MlxHost> hosts_in_hostfile(const std::string& text);

}  // namespace ringbolt::tools::doctor
