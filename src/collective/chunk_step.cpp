// Hot path: no allocation, no lock, no system call.
#include "collective/chunk_step.h"

#include <cstring>

#include "base/copy.h"
#include "collective/arithmetic.h"

namespace ringbolt::collective {
namespace {

/// Also where they overlap.
void copy_bytes(std::byte* to, const std::byte* from, size_t length) {
  if (to < from + length && from < to + length) {
    std::memmove(to, from, length);
  } else {
    base::copy(to, from, length);
  }
}

}  // namespace

bool take_slots(PointToPoint& p2p, const CompiledProgram::Step& step, uint32_t length_bytes,
                std::span<PointToPoint::Slot> slots) {
  for (size_t i = 0; i < step.targets.size(); ++i) {
    const auto slot = p2p.take_slot(length_bytes);
    if (!slot) {
      while (i > 0) {
        p2p.cancel(slots[--i]);
      }
      return false;
    }
    slots[i] = *slot;
  }
  return true;
}

void put_chunk(PointToPoint& p2p, const CompiledProgram::Step& step, const Operands& operands,
               std::span<const std::byte* const> sources, std::byte* local, std::span<const PointToPoint::Slot> slots,
               uint32_t length_bytes, const ChunkTag& tag) {
  const uint32_t divisor = step.finishes ? operands.divisor : 0;
  // A rank that is alone copies, but for booleans: what is true becomes 1 as among others.
  const bool is_computed = sources.size() > 1 || divisor != 0 || (step.finishes && operands.type == Type::boolean);
  // Computed once, and copied from there to the other targets.
  std::byte* const first = step.has_local ? local : slots[0].bytes;
  if (length_bytes > 0 && is_computed) {
    reduce(operands.type, operands.reduction, first, sources, length_bytes, divisor);
  } else if (length_bytes > 0 && step.has_local && first != sources[0]) {
    copy_bytes(first, sources[0], length_bytes);
  }
  const std::byte* const result = is_computed || step.has_local ? first : sources[0];
  for (size_t i = 0; i < step.targets.size(); ++i) {
    if (length_bytes > 0 && slots[i].bytes != result) {
      p2p.fill(slots[i], result, length_bytes);
    }
  }
  for (size_t i = 0; i < step.targets.size(); ++i) {
    const CompiledProgram::Target& target = step.targets[i];
    // After all have been filled: a slot that is sent may be read, and given up, at any time.
    p2p.send(slots[i], length_bytes, target.peer, target.via, {tag.call, target.transfer, tag.chunk});
  }
}

}  // namespace ringbolt::collective
