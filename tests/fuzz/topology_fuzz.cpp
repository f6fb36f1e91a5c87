// Any bytes as a topology of the command line: refused with a reason, or a cluster within the bounds.

#include "base/assert.h"
#include "cluster/limits.h"
#include "cluster/topology.h"
#include "input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ringbolt;
  const auto cluster = cluster::parse_topology(fuzz::as_text(data, size));
  if (!cluster) {
    RINGBOLT_ASSERT(!cluster.error().problem.empty());
    return 0;
  }
  RINGBOLT_ASSERT(cluster->nodes.size() <= cluster::kMaxNodes && cluster->cables.size() <= cluster::kMaxCables);
  return 0;
}
