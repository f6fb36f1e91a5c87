#pragma once

#include <cstdint>
#include <string>

#include "cluster_state.h"

namespace ringbolt::tools {

/// "n0:rdma_en2-n1:rdma_en3".
std::string cable_text(const LiveCluster& live, uint32_t index);

/// The cable that `text` names by its ends: A-B, or A:PORT-B:PORT where some are parallel. Throws UsageError that says
/// which cables there are.
uint32_t find_cable(const LiveCluster& live, const std::string& text);

}  // namespace ringbolt::tools
