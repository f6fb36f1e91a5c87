// Hot path: see clear_to_send.h.
#include "circuit/clear_to_send.h"

#include <algorithm>

#include "base/assert.h"
#include "base/byte_writer.h"
#include "base/little_endian.h"

namespace ringbolt::circuit {
namespace {

// The byte of flags, docs/formats/circuit.md; others must be 0.
constexpr uint8_t kIsBase = 1;

void take_part(base::ByteReader& reader, bool is_direct, uint32_t n_rails, ClearedPart& part) {
  part = {};
  part.tag = static_cast<int32_t>(reader.take<uint32_t>());
  part.is_direct = is_direct;
  if (is_direct) {
    part.capacity = reader.take<uint64_t>();
    part.address = reader.take<uint64_t>();
    for (uint32_t rail = 0; rail < n_rails; ++rail) {
      part.keys[rail] = reader.take<uint32_t>();
    }
  }
}

}  // namespace

size_t bytes_of(const ClearedReceive& receive, uint32_t n_rails) {
  size_t bytes = 2;
  for (const ClearedPart& part : std::span(receive.parts).first(receive.n_parts)) {
    bytes += part.is_direct ? 20 + 4 * size_t{n_rails} : 4;
  }
  return bytes;
}
// Otherwise Clearing::tell() would find no room for it in any frame, and never move on.
static_assert(2 + kMostParts * (20 + 4 * kMostRails) <= kClearToSendBytes - kShortHeaderBytes - 4 - 2 * kMostRails,
              "the largest receive fits");

uint32_t emit(FrameHeader header, const ClearToSend& clearance, std::span<std::byte, kClearToSendBytes> to) {
  size_t at = kShortHeaderBytes;
  const auto put = [&](auto value) {
    // Clearing::tell() has counted: a frame that is too long is a bug of ours, not of the peer.
    RINGBOLT_ASSERT(at + sizeof value <= to.size());
    base::put_le(std::span<std::byte>(to), at, value);
    at += sizeof value;
  };
  put(static_cast<uint8_t>(clearance.n_rails));
  put(static_cast<uint8_t>(clearance.n_receives));
  put(static_cast<uint8_t>(clearance.is_base ? kIsBase : 0));
  put(uint8_t{0});
  for (uint32_t i = 0; i < clearance.n_rails; ++i) {
    put(clearance.rails[i]);
  }
  for (const ClearedReceive& receive : std::span(clearance.receives).first(clearance.n_receives)) {
    uint8_t direct = 0;
    for (uint32_t i = 0; i < receive.n_parts; ++i) {
      direct = static_cast<uint8_t>(direct | (receive.parts[i].is_direct ? 1U << i : 0U));
    }
    put(static_cast<uint8_t>(receive.n_parts));
    put(direct);
    for (const ClearedPart& part : std::span(receive.parts).first(receive.n_parts)) {
      put(static_cast<uint32_t>(part.tag));
      if (part.is_direct) {
        put(part.capacity);
        put(part.address);
        for (uint32_t rail = 0; rail < clearance.n_rails; ++rail) {
          put(part.keys[rail]);
        }
      }
    }
  }
  header.kind = FrameKind::clear_to_send;
  header.sequence = clearance.first;
  header.message = clearance.base_message;
  header.length = static_cast<uint32_t>(at - kShortHeaderBytes);
  emit(header, to.data());
  return static_cast<uint32_t>(at);
}

bool parse_clear_to_send(const FrameHeader& header, std::span<const std::byte> payload, ClearToSend& clearance) {
  base::ByteReader reader(payload.first(std::min<size_t>(payload.size(), header.length)));
  // The reader yields zeros from the first missing byte on, so each count is checked before it is used as one, and
  // soundness is asked for at the end.
  clearance.first = header.sequence;
  clearance.base_message = header.message;
  clearance.n_rails = reader.take<uint8_t>();
  clearance.n_receives = reader.take<uint8_t>();
  const auto flags = reader.take<uint8_t>();
  const auto reserved = reader.take<uint8_t>();
  clearance.is_base = flags == kIsBase;
  if (clearance.n_rails > kMostRails || clearance.n_receives == 0 || clearance.n_receives > kMostPerClearToSend ||
      flags > kIsBase || reserved != 0) {
    return false;
  }
  clearance.rails = {};
  for (uint32_t i = 0; i < clearance.n_rails; ++i) {
    clearance.rails[i] = reader.take<uint16_t>();
  }
  for (ClearedReceive& receive : std::span(clearance.receives).first(clearance.n_receives)) {
    receive.n_parts = reader.take<uint8_t>();
    const auto direct = reader.take<uint8_t>();
    if (receive.n_parts == 0 || receive.n_parts > kMostParts || direct >> receive.n_parts != 0 || !reader.is_sound()) {
      return false;
    }
    for (uint32_t i = 0; i < receive.n_parts; ++i) {
      take_part(reader, (direct >> i & 1U) != 0, clearance.n_rails, receive.parts[i]);
      // Nowhere does memory wrap around.
      if (receive.parts[i].capacity > UINT64_MAX - receive.parts[i].address) {
        return false;
      }
    }
  }
  return reader.is_sound() && reader.is_at_end();
}

}  // namespace ringbolt::circuit
