// Any bytes as a cluster file: refused with a reason, or a cluster that survives being written and read again.

#include "base/assert.h"
#include "cluster/cluster_file.h"
#include "input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ringbolt;
  const auto cluster = cluster::parse_cluster(fuzz::as_text(data, size));
  if (!cluster) {
    RINGBOLT_ASSERT(!cluster.error().problem.empty());
    return 0;
  }
  const auto again = cluster::parse_cluster(cluster::emit_cluster(*cluster));
  RINGBOLT_ASSERT(again && *again == *cluster);
  return 0;
}
