#pragma once

#include <cstdint>
#include <vector>

#include "verify/step.h"

namespace ringbolt::tools::verify {

/// A piece of the target's memory.
struct Block {
  uint64_t sequence = 0;  ///< of the blocks of its queue pair, over all rounds
  uint64_t offset = 0;    ///< in the area
  uint32_t length = 0;
};

/// Where a round writes or reads on one queue pair: up to `most` blocks that don't overlap, at offsets of every kind,
/// in the order of their offsets. Both ends compute it. `first`: the sequence number of the first. Thread-safe.
std::vector<Block> blocks_of(const Step& step, uint32_t queue_pair, uint64_t first, uint32_t most, uint64_t area_bytes);

/// How large an area has to be for that, in bytes.
uint64_t area_bytes_of(const Step& step);

}  // namespace ringbolt::tools::verify
