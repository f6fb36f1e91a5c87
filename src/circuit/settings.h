#pragma once

#include <string>
#include <vector>

#include "bootstrap/environment.h"
#include "circuit/endpoint.h"

namespace ringbolt::circuit {

struct Settings {
  EndpointPlan plan;
  std::vector<std::string> remarks;  ///< about variables that were not understood
};

/// Which node this process is on, what it calls itself, and what else variables say (docs/environment.md):
/// RINGBOLT_VERBS, RINGBOLT_GROUP, RINGBOLT_SECRET and RINGBOLT_SECRET_FILE, RINGBOLT_CRC, RINGBOLT_FROZEN_MS,
/// RINGBOLT_NCCL_WAY and RINGBOLT_NCCL_DIRECT_BYTES, and RINGBOLT_CLUSTER with
/// RINGBOLT_NODE, by which emulated nodes know each other. `machine`: membership::machine_number(). Throws base::Error
/// for a secret that can't be read. Pure, but for `read`. Values that are not understood leave the default, with a
/// remark; nothing is refused.
Settings settings_from(const bootstrap::Environment& environment, const bootstrap::ReadFile& read, uint64_t machine,
                       const std::string& host, int pid);
/// Of this process' environment, which nobody may change meanwhile.
Settings settings_from_process();

}  // namespace ringbolt::circuit
