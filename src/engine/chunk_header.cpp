#include "engine/chunk_header.h"

#include <bit>
#include <cstring>

#include "base/crc.h"

namespace ringbolt::engine {
namespace {

constexpr uint8_t kMagic = 0xb7;
constexpr uint8_t kVersion = 1;
constexpr uint8_t kHasPayloadCrc = 1;
constexpr uint8_t kWantsAck = 2;
constexpr uint8_t kReadsInPlace = 4;
constexpr size_t kCrcBegin = 4;
constexpr size_t kCrcEnd = 8;

static_assert(std::endian::native == std::endian::little, "headers are little-endian, as they lie in memory");

class Writer {
 public:
  explicit Writer(std::byte* to) : to_(to) {}
  template <class T>
  void put(T value) {
    std::memcpy(to_, &value, sizeof value);
    to_ += sizeof value;
  }

 private:
  std::byte* to_;
};

class Reader {
 public:
  explicit Reader(const std::byte* from) : from_(from) {}
  template <class T>
  T take() {
    T value{};
    std::memcpy(&value, from_, sizeof value);
    from_ += sizeof value;
    return value;
  }

 private:
  const std::byte* from_;
};

/// Of the header but its own place.
uint32_t header_crc(const std::byte* header) {
  const uint32_t crc = base::crc32c(0, {header, kCrcBegin});
  return base::crc32c(crc, {header + kCrcEnd, kHeaderBytes - kCrcEnd});
}

}  // namespace

void emit(const ChunkHeader& header, std::span<std::byte, kHeaderBytes> to) {
  Writer out(to.data());
  out.put(kMagic);
  out.put(kVersion);
  out.put(static_cast<uint8_t>(header.kind));
  out.put(static_cast<uint8_t>((header.has_payload_crc ? kHasPayloadCrc : 0) | (header.wants_ack ? kWantsAck : 0) |
                               (header.reads_in_place ? kReadsInPlace : 0)));
  out.put(uint32_t{0});
  out.put(header.payload_crc);
  out.put(header.length_bytes);
  out.put(header.session);
  out.put(header.source);
  out.put(header.destination);
  out.put(header.hops_done);
  out.put(header.n_via);
  out.put(header.via);
  out.put(header.sequence);
  out.put(header.ack);
  out.put(header.group);
  out.put(header.lane);
  out.put(header.call);
  out.put(header.chunk);
  out.put(header.signature);
  out.put(header.incarnation);
  out.put(header.cable_number);
  out.put(header.credit_class);
  out.put(header.reserved);
  out.put(header.freed_small);
  out.put(header.freed_large);
  out.put(uint16_t{0});
  Writer(to.data() + kCrcBegin).put(header_crc(to.data()));
}

std::optional<ChunkHeader> parse_header(std::span<const std::byte> message) {
  return parse_header(message, message.size());
}

std::optional<ChunkHeader> parse_header(std::span<const std::byte> head, size_t message_bytes) {
  if (head.size() < kHeaderBytes || message_bytes < kHeaderBytes) {
    return std::nullopt;
  }
  Reader in(head.data());
  const auto magic = in.take<uint8_t>();
  const auto version = in.take<uint8_t>();
  const auto kind = in.take<uint8_t>();
  const auto flags = in.take<uint8_t>();
  const auto crc = in.take<uint32_t>();
  if (magic != kMagic || version != kVersion || kind < 1 || kind > 4 || flags > (kHasPayloadCrc | kWantsAck | kReadsInPlace) ||
      crc != header_crc(head.data())) {
    return std::nullopt;
  }
  ChunkHeader header;
  header.kind = static_cast<Kind>(kind);
  header.has_payload_crc = (flags & kHasPayloadCrc) != 0;
  header.wants_ack = (flags & kWantsAck) != 0;
  header.reads_in_place = (flags & kReadsInPlace) != 0;
  header.payload_crc = in.take<uint32_t>();
  header.length_bytes = in.take<uint32_t>();
  header.session = in.take<uint32_t>();
  header.source = in.take<uint8_t>();
  header.destination = in.take<uint8_t>();
  header.hops_done = in.take<uint8_t>();
  header.n_via = in.take<uint8_t>();
  header.via = in.take<decltype(header.via)>();
  header.sequence = in.take<uint32_t>();
  header.ack = in.take<uint32_t>();
  header.group = in.take<uint16_t>();
  header.lane = in.take<uint16_t>();
  header.call = in.take<uint32_t>();
  header.chunk = in.take<uint32_t>();
  header.signature = in.take<uint32_t>();
  header.incarnation = in.take<uint16_t>();
  header.cable_number = in.take<uint16_t>();
  header.credit_class = in.take<uint8_t>();
  header.reserved = in.take<uint8_t>();
  header.freed_small = in.take<uint16_t>();
  header.freed_large = in.take<uint16_t>();
  if (header.length_bytes > message_bytes - kHeaderBytes || header.n_via > kMostVia ||
      header.hops_done > header.n_via) {
    return std::nullopt;
  }
  return header;
}

bool has_sound_payload(const ChunkHeader& header, std::span<const std::byte> message) {
  return !header.has_payload_crc ||
         base::crc32c(0, message.subspan(kHeaderBytes, header.length_bytes)) == header.payload_crc;
}

}  // namespace ringbolt::engine
