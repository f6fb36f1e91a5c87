#include <cstring>

#include "base/crc.h"
#include "base/crc_tables.h"

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace ringbolt::base {
namespace {

#if defined(__x86_64__)
bool has_instruction() {
  static const bool has = __builtin_cpu_supports("sse4.2") != 0;
  return has;
}

__attribute__((target("sse4.2"))) uint32_t register_by_instruction(uint32_t value, std::span<const std::byte> bytes) {
  uint64_t wide = value;
  while (bytes.size() >= sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof word);
    wide = _mm_crc32_u64(wide, word);
    bytes = bytes.subspan(sizeof word);
  }
  value = static_cast<uint32_t>(wide);
  for (const std::byte byte : bytes) {
    value = _mm_crc32_u8(value, std::to_integer<uint8_t>(byte));
  }
  return value;
}
#else
bool has_instruction() { return false; }
uint32_t register_by_instruction(uint32_t value, std::span<const std::byte>) { return value; }
#endif

}  // namespace

uint32_t crc32c(uint32_t crc, std::span<const std::byte> bytes) {
  return ~(has_instruction() ? register_by_instruction(~crc, bytes)
                             : crc_register_by_tables<kCrc32cPolynomial>(~crc, bytes));
}

}  // namespace ringbolt::base
