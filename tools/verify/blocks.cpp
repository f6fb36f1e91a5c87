#include "verify/blocks.h"

#include <algorithm>

#include "pattern.h"

namespace ringbolt::tools::verify {

uint64_t area_bytes_of(const Step& step) {
  constexpr uint64_t kLeast = 65536;
  constexpr uint64_t kUsual = uint64_t{1} << 20U;
  return std::max(std::clamp(step.most_bytes * 4, kLeast, kUsual), step.most_bytes + 4096);
}

std::vector<Block> blocks_of(const Step& step, uint32_t queue_pair, uint64_t first, uint32_t most,
                             uint64_t area_bytes) {
  std::vector<Block> blocks;
  const uint64_t dice = mixed(mixed(step.seed ^ 0x626c6f63) + (first << 8U) + queue_pair);
  uint64_t at = dice % 4096;
  while (blocks.size() < most) {
    const uint64_t sequence = first + blocks.size();
    const uint32_t length = size_of(step, queue_pair, sequence);
    if (at + length > area_bytes) {
      break;
    }
    blocks.push_back({sequence, at, length});
    // Sometimes side by side, sometimes apart.
    const uint64_t gap = mixed(dice ^ sequence);
    at += length + (gap % 4 == 0 ? 0 : gap % 300);
  }
  return blocks;
}

}  // namespace ringbolt::tools::verify
