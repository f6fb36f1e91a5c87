#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "collective/compiled_program.h"
#include "collective/element.h"
#include "collective/point_to_point.h"

namespace ringbolt::collective {

/// The memory of a call and what is done with it. Input and output may overlap in any way that the layouts of Problem
/// allow: a step that writes waits for those that still have to read the same bytes.
/// A value; the memory is the caller's.
struct Operands {
  const std::byte* input = nullptr;
  std::byte* output = nullptr;
  Type type = Type::uint8;
  Reduction reduction = Reduction::sum;
  uint32_t divisor = 0;  ///< where a step finishes: see reduce()
};

// What one chunk of a step is, whoever runs the program: both kinds of execution give the same bits because they do it
// here.

/// A slot for each target of the step, into `slots`; all or none.
/// `slots` has room for as many as the step has targets. Holding some while waiting for others, ranks could wait for
/// each other for ever.
bool take_slots(PointToPoint& p2p, const CompiledProgram::Step& step, uint32_t length_bytes,
                std::span<PointToPoint::Slot> slots);

/// Computes chunk `tag.chunk` and sends it. `sources`: where its bytes lie, by source of the step; `local`: where they
/// go in this rank's memory, if the step has such a target; `slots`: of take_slots(). `tag.transfer` is not read.
void put_chunk(PointToPoint& p2p, const CompiledProgram::Step& step, const Operands& operands,
               std::span<const std::byte* const> sources, std::byte* local, std::span<const PointToPoint::Slot> slots,
               uint32_t length_bytes, const ChunkTag& tag);

}  // namespace ringbolt::collective
