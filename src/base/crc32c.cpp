#include <cstring>

#include "base/crc.h"
#include "base/crc_folding.h"
#include "base/crc_tables.h"

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace ringbolt::base {
namespace {

#if defined(__x86_64__)
// Before it has been set, tables do.
const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;

__attribute__((target("sse4.2"))) uint32_t register_by_instruction(uint32_t value, std::span<const std::byte> bytes) {
  const std::byte* at = bytes.data();
  const std::byte* const end = at + bytes.size();
  const std::byte* const words_end = at + bytes.size() / sizeof(uint64_t) * sizeof(uint64_t);
  uint64_t wide = value;
  for (; at != words_end; at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    wide = _mm_crc32_u64(wide, word);
  }
  value = static_cast<uint32_t>(wide);
  if (end - at >= static_cast<ptrdiff_t>(sizeof(uint32_t))) {
    uint32_t word = 0;
    std::memcpy(&word, at, sizeof word);
    value = _mm_crc32_u32(value, word);
    at += sizeof word;
  }
  for (; at != end; ++at) {
    value = _mm_crc32_u8(value, std::to_integer<uint8_t>(*at));
  }
  return value;
}
#else
constexpr bool has_instruction = false;
uint32_t register_by_instruction(uint32_t value, std::span<const std::byte>) { return value; }
#endif

}  // namespace

uint32_t crc32c(uint32_t crc, std::span<const std::byte> bytes) {
  uint32_t value = ~crc;
  // The instruction is at its best below this; beyond, wide registers are three to five times as fast.
  constexpr size_t kMinWideBytes = 512;
  if (bytes.size() >= kMinWideBytes) {
    static const Crc32Folding folding = widest_crc32_folding();
    if (folding >= Crc32Folding::bits_256) {
      const size_t folded = bytes.size() / 16 * 16;
      value = fold_crc32c(folding, value, bytes.first(folded));
      bytes = bytes.subspan(folded);
    }
  }
  return ~(has_instruction ? register_by_instruction(value, bytes)
                           : crc_register_by_tables<kCrc32cPolynomial>(value, bytes));
}

}  // namespace ringbolt::base
