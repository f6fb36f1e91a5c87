#include "base/crc.h"

#include "base/crc_folding.h"
#include "base/crc_tables.h"

namespace ringbolt::base {

uint32_t crc32(uint32_t crc, std::span<const std::byte> bytes) {
  uint32_t value = ~crc;
  const Crc32Folding folding = widest_crc32_folding();
  if (bytes.size() >= kMinFoldedBytes && folding != Crc32Folding::none) {
    const size_t folded = bytes.size() / 16 * 16;
    value = fold_crc32(folding, value, bytes.first(folded));
    bytes = bytes.subspan(folded);
  }
  return ~crc_register_by_tables<kCrc32Polynomial>(value, bytes);
}

}  // namespace ringbolt::base
