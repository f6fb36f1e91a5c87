#include "workload.h"

namespace ringbolt::sim {
namespace {

using transport::Operation;

/// Around the edges of packets as often as anywhere.
uint32_t random_length(Random& random, uint32_t mtu_bytes) {
  switch (random.below(6)) {
    case 0:
      return 0;
    case 1:
      return static_cast<uint32_t>(random.between(1, 64));
    case 2:
      return static_cast<uint32_t>(mtu_bytes * random.between(1, 4) + random.between(0, 2) - 1);
    case 3:
      return static_cast<uint32_t>(random.between(1, mtu_bytes));
    default:
      return static_cast<uint32_t>(random.between(1, 24 * uint64_t{mtu_bytes}));
  }
}

Operation random_operation(Random& random, uint32_t mtu_bytes, Kinds kinds) {
  Operation operation;
  constexpr Operation::Kind kAll[] = {Operation::send, Operation::send, Operation::write,        Operation::write,
                                      Operation::read, Operation::read, Operation::compare_swap, Operation::fetch_add};
  operation.kind = kAll[random.below(kinds == Kinds::all ? 8 : 4)];
  operation.length = operation.is_atomic() ? 0 : random_length(random, mtu_bytes);
  operation.is_fenced = random.one_in(8);
  operation.is_solicited = random.one_in(4);
  operation.has_immediate = !operation.is_answered() && random.one_in(3);
  operation.invalidates =
      kinds == Kinds::all && operation.kind == Operation::send && !operation.has_immediate && random.one_in(3);
  operation.immediate = static_cast<uint32_t>(random.next());
  operation.key = kRegionKey;
  return operation;
}

}  // namespace

Workload make_workload(Random& random, uint32_t count, uint32_t mtu_bytes, Kinds kinds) {
  Workload workload;
  uint64_t atomics = 0;
  for (uint32_t i = 0; i < count; ++i) {
    Operation operation = random_operation(random, mtu_bytes, kinds);
    operation.invalidate_key = kWindowKey + i;
    if (operation.kind == Operation::write) {
      operation.remote_address = kRegionAddress + workload.written_bytes;
      workload.written_bytes += operation.length + random.below(16);  // with gaps that nobody may touch
    } else if (operation.kind == Operation::read) {
      operation.remote_address = workload.read_bytes;
      workload.read_bytes += operation.length;
    } else if (operation.is_atomic()) {
      // Each adds one: a fetch-and-add of 1, or a swap of n for n + 1.
      operation.compare = atomics;
      operation.swap_or_add = operation.kind == Operation::fetch_add ? 1 : atomics + 1;
      ++atomics;
    }
    if (operation.kind == Operation::send || operation.has_immediate) {
      const uint64_t slack = random.one_in(2) ? 0 : random.below(100);
      workload.receives.push_back(
          static_cast<uint32_t>((operation.kind == Operation::send ? operation.length : 0) + slack));
    }
    workload.operations.push_back(operation);
  }
  workload.written_bytes += (8 - workload.written_bytes % 8) % 8;
  workload.read_bytes += (8 - workload.read_bytes % 8) % 8;
  workload.counter_address = kRegionAddress + workload.written_bytes + workload.read_bytes;
  for (Operation& operation : workload.operations) {
    if (operation.kind == Operation::read) {
      operation.remote_address += kRegionAddress + workload.written_bytes;
    } else if (operation.is_atomic()) {
      operation.remote_address = workload.counter_address;
    }
  }
  return workload;
}

}  // namespace ringbolt::sim
