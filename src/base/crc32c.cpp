#include "base/crc.h"

#include <cstring>

#include "base/crc_folding.h"
#include "base/crc_instruction.h"
#include "base/crc_tables.h"

namespace ringbolt::base {
namespace {

// Before it has been set, tables do.
const bool has_instruction = has_crc32c_instruction();

// The instruction is at its best below this; beyond, wide registers are three to five times as fast on x86. On ARM64,
// where no processor was measured, four folded registers of 128 bits do not wait for each other as the instruction
// does.
constexpr size_t kMinWideBytes = 512;
#if defined(__aarch64__)
constexpr Crc32Folding kLeastFolding = Crc32Folding::bits_128;
#else
constexpr Crc32Folding kLeastFolding = Crc32Folding::bits_256;
#endif

uint32_t register_after(uint32_t value, std::span<const std::byte> bytes) {
  return has_instruction ? crc_register_by_instruction<Crc32cSteps>(value, bytes)
                         : crc_register_by_tables<kCrc32cPolynomial>(value, bytes);
}

[[gnu::noinline]] uint32_t crc32c_of_many(uint32_t crc, std::span<const std::byte> bytes) {
  uint32_t value = ~crc;
  static const Crc32Folding folding = widest_crc32_folding();
  if (folding >= kLeastFolding) {
    const size_t folded = bytes.size() / 16 * 16;
    value = fold_crc32c(folding, value, bytes.first(folded));
    bytes = bytes.subspan(folded);
  }
  return ~register_after(value, bytes);
}

RINGBOLT_CRC_TARGET uint32_t by_words(std::span<const std::byte, 72> bytes) {
  uint64_t value = UINT32_MAX;
#pragma GCC unroll 9
  for (size_t at = 0; at < bytes.size(); at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    value = Crc32cSteps::of_8(value, word);
  }
  return ~static_cast<uint32_t>(value);
}

}  // namespace

uint32_t crc32c_of_72(std::span<const std::byte, 72> bytes) {
  return has_instruction ? by_words(bytes) : ~register_after(UINT32_MAX, bytes);
}

uint32_t crc32c(uint32_t crc, std::span<const std::byte> bytes) {
  return bytes.size() >= kMinWideBytes ? crc32c_of_many(crc, bytes) : ~register_after(~crc, bytes);
}

}  // namespace ringbolt::base
