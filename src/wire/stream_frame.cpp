#include "wire/stream_frame.h"

#include <cerrno>
#include <cstring>

#include "base/assert.h"
#include "base/crc.h"
#include "wire/bytes.h"

namespace ringbolt::wire {
namespace {

struct At {
  static constexpr size_t magic = 0, type = 4, flags = 5, header_bytes = 6, epoch = 8, sequence = 12, length = 16,
                          expected = 20, credit = 24, destination_qp = 28, payload_crc = 32, header_crc = 36, end = 40;
};
static_assert(At::end == kStreamHeaderBytes);

constexpr uint32_t kMagic = 0x31534252;  // "RBS1"
constexpr uint8_t kLast = 1;

}  // namespace

base::Result<StreamHeader> parse_stream_header(std::span<const std::byte> bytes) {
  if (bytes.size() < kStreamHeaderBytes || get_le<uint32_t>(bytes, At::magic) != kMagic ||
      get_le<uint32_t>(bytes, At::header_crc) != base::crc32c(0, bytes.first(At::header_crc))) {
    return base::fail(EBADMSG);
  }
  const auto type = get_le<uint8_t>(bytes, At::type);
  const auto flags = get_le<uint8_t>(bytes, At::flags);
  StreamHeader header;
  header.type = static_cast<StreamType>(type);
  header.is_last = (flags & kLast) != 0;
  header.epoch = get_le<uint32_t>(bytes, At::epoch);
  header.sequence = get_le<uint32_t>(bytes, At::sequence);
  header.length = get_le<uint32_t>(bytes, At::length);
  header.expected = get_le<uint32_t>(bytes, At::expected);
  header.credit = get_le<uint32_t>(bytes, At::credit);
  header.destination_qp = get_le<uint32_t>(bytes, At::destination_qp);
  header.payload_crc = get_le<uint32_t>(bytes, At::payload_crc);
  // Behind a checksum that fits: only another version, or somebody who means harm, brings this about.
  if (get_le<uint16_t>(bytes, At::header_bytes) != kStreamHeaderBytes ||
      type < static_cast<uint8_t>(StreamType::hello) || type > static_cast<uint8_t>(StreamType::bye) ||
      (flags & ~kLast) != 0 || header.epoch == 0 || header.length > kStreamPayloadBytes) {
    return base::fail(EBADMSG);
  }
  return header;
}

bool is_intact(const StreamHeader& header, std::span<const std::byte> payload) {
  return payload.size() == header.length && base::crc32c(0, payload) == header.payload_crc;
}

size_t emit(StreamHeader header, std::span<const std::byte> payload, std::span<std::byte> out) {
  RINGBOLT_ASSERT(payload.size() <= kStreamPayloadBytes && out.size() >= kStreamHeaderBytes + payload.size());
  put_le(out, At::magic, kMagic);
  put_le(out, At::type, static_cast<uint8_t>(header.type));
  put_le(out, At::flags, header.is_last ? kLast : uint8_t{0});
  put_le(out, At::header_bytes, static_cast<uint16_t>(kStreamHeaderBytes));
  put_le(out, At::epoch, header.epoch);
  put_le(out, At::sequence, header.sequence);
  put_le(out, At::length, static_cast<uint32_t>(payload.size()));
  put_le(out, At::expected, header.expected);
  put_le(out, At::credit, header.credit);
  put_le(out, At::destination_qp, header.destination_qp);
  put_le(out, At::payload_crc, base::crc32c(0, payload));
  put_le(out, At::header_crc, base::crc32c(0, out.first(At::header_crc)));
  if (!payload.empty()) {
    std::memcpy(out.data() + kStreamHeaderBytes, payload.data(), payload.size());
  }
  return kStreamHeaderBytes + payload.size();
}

StreamHunt hunt_for_hello(std::span<const std::byte> bytes) {
  size_t at = 0;
  for (; at + kStreamHeaderBytes <= bytes.size(); ++at) {
    const auto header = parse_stream_header(bytes.subspan(at));
    if (header && header->type == StreamType::hello) {
      return {at, at};
    }
  }
  return {std::nullopt, at};
}

}  // namespace ringbolt::wire
