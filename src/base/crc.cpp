#include "base/crc.h"

#include "base/crc_folding.h"
#include "base/crc_instruction.h"
#include "base/crc_tables.h"

namespace ringbolt::base {
namespace {

// Before they have been set, tables do. Set while the library is loaded, and zero-initialised (none) until then, so a
// constructor of another file that computes a CRC gets the same result, only slower. A function's static would cost
// each short CRC its guard.
const Crc32Folding widest_folding = widest_crc32_folding();
#if defined(__aarch64__)
const bool has_crc32_instruction = has_crc32c_instruction();
#endif

uint32_t register_of_few(uint32_t value, std::span<const std::byte> bytes) {
#if defined(__aarch64__)
  // There the same extension has both polynomials, and some processors have it without carry-less multiplication.
  if (has_crc32_instruction) {
    return crc_register_by_instruction<Crc32Steps>(value, bytes);
  }
#endif
  return crc_register_by_tables<kCrc32Polynomial>(value, bytes);
}

}  // namespace

uint32_t crc32(uint32_t crc, std::span<const std::byte> bytes) {
  uint32_t value = ~crc;
  if (bytes.size() >= kMinFoldedBytes && widest_folding != Crc32Folding::none) {
    const size_t folded = bytes.size() / 16 * 16;
    value = fold_crc32(widest_folding, value, bytes.first(folded));
    bytes = bytes.subspan(folded);
  }
  return ~register_of_few(value, bytes);
}

// All ones before the message are an inversion of its first four bytes, and zeros leave a register of zeros as it is.
uint32_t crc32_of_blocks(std::span<const std::byte> blocks) {
#if defined(__aarch64__)
  const bool folds =
      widest_folding != Crc32Folding::none && !has_crc32_instruction;  // eight bytes a step, without more ado
#else
  const bool folds = widest_folding != Crc32Folding::none;
#endif
  return ~(folds ? fold_crc32(Crc32Folding::bits_128, 0, blocks) : register_of_few(0, blocks));
}

}  // namespace ringbolt::base
