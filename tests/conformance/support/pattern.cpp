#include "pattern.h"

namespace ringbolt::conformance {

void fill_pattern(std::span<uint8_t> out, uint64_t seed, uint64_t first) {
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = pattern_byte(seed, first + i);
  }
}

int64_t first_mismatch(std::span<const uint8_t> bytes, uint64_t seed, uint64_t first) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != pattern_byte(seed, first + i)) {
      return static_cast<int64_t>(i);
    }
  }
  return -1;
}

}  // namespace ringbolt::conformance
