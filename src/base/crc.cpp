#include "base/crc.h"

#include "base/crc_folding.h"
#include "base/crc_instruction.h"
#include "base/crc_tables.h"

namespace ringbolt::base {
namespace {

uint32_t register_of_few(uint32_t value, std::span<const std::byte> bytes) {
#if defined(__aarch64__)
  // There the same extension has both polynomials, and some processors have it without carry-less multiplication.
  static const bool has_instruction = has_crc32c_instruction();
  if (has_instruction) {
    return crc_register_by_instruction<Crc32Steps>(value, bytes);
  }
#endif
  return crc_register_by_tables<kCrc32Polynomial>(value, bytes);
}

}  // namespace

uint32_t crc32(uint32_t crc, std::span<const std::byte> bytes) {
  uint32_t value = ~crc;
  const Crc32Folding folding = widest_crc32_folding();
  if (bytes.size() >= kMinFoldedBytes && folding != Crc32Folding::none) {
    const size_t folded = bytes.size() / 16 * 16;
    value = fold_crc32(folding, value, bytes.first(folded));
    bytes = bytes.subspan(folded);
  }
  return ~register_of_few(value, bytes);
}

}  // namespace ringbolt::base
