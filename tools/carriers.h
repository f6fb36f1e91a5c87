#pragma once

#include "cluster/model.h"

namespace ringbolt::tools {

/// Waits until the kernel says that both ends of every cable of a cluster of namespaces are up, as it does up to a
/// second after they were brought up; until then ports are down, and what is sent is lost. After 5 s it goes on
/// without: `ringbolt status` and programs see which port has no carrier. Blocks.
void wait_for_carriers(const cluster::Cluster& model);

}  // namespace ringbolt::tools
