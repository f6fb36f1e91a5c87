// Any bytes as another rank's port cards: refused, or cards that are written back byte for byte.

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/assert.h"
#include "base/crc.h"
#include "bringup/port_card.h"

namespace {

using namespace ringbolt;

void check(std::span<const std::byte> in) {
  if (const auto cards = bringup::parse_cards(in)) {
    const auto out = bringup::emit_cards(*cards);
    RINGBOLT_ASSERT(std::equal(out.begin(), out.end(), in.begin(), in.end()));
    for (const bringup::PortCard& card : *cards) {
      RINGBOLT_ASSERT(!bringup::is_empty(card.gid()));
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto in = std::as_bytes(std::span(data, size));
  check(in);
  // The same with a length and a checksum that fit, or the checks behind them would never be reached.
  std::vector<std::byte> mended(in.begin(), in.end());
  if (mended.size() >= 16) {
    const auto put = [&](size_t at, size_t value) {
      for (size_t i = 0; i < 4; ++i) {
        mended[at + i] = static_cast<std::byte>(value >> (24 - 8 * i));
      }
    };
    put(8, mended.size());
    put(mended.size() - 4, base::crc32c(0, std::span(mended).first(mended.size() - 4)));
    check(mended);
  }
  return 0;
}
