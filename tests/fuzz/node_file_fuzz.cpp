// Any bytes as a node file: refused with a reason, or a node that survives being written and read again.

#include "base/assert.h"
#include "cluster/node_file.h"
#include "input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ringbolt;
  const auto node = cluster::parse_node(fuzz::as_text(data, size));
  if (!node) {
    RINGBOLT_ASSERT(!node.error().problem.empty());
    return 0;
  }
  const auto again = cluster::parse_node(cluster::emit_node(*node));
  RINGBOLT_ASSERT(again && *again == *node);
  return 0;
}
