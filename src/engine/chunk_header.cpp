#include "engine/chunk_header.h"

#include <bit>
#include <cstring>

#include "base/crc.h"

namespace ringbolt::engine {
namespace {

constexpr uint8_t kHasPayloadCrc = 1;
constexpr uint8_t kWantsAck = 2;
constexpr uint8_t kReadsInPlace = 4;
constexpr uint8_t kEndedBefore = 8;

static_assert(std::endian::native == std::endian::little, "headers are little-endian, as they lie in memory");

// The header is put together by words: fields stored one by one could not be read back as words, as the checksum reads
// them, before everything that was written earlier, the payload too, has left the core.
constexpr size_t kWordBytes = sizeof(uint64_t);
constexpr size_t kCrcAt = offsetof(ChunkHeader, crc);  // zero while it is computed

/// A field's place in its word, `bits` up. It is read by itself: the compiler must not read two neighbours as a word.
template <class T>
uint64_t up(T value, unsigned bits) {
  auto word = static_cast<uint64_t>(value);
  asm("" : "+r"(word));
  return word << bits;
}

/// Of either kind of header.
unsigned flags_of(const auto& header) {
  return (header.has_payload_crc ? kHasPayloadCrc : 0U) | (header.wants_ack ? kWantsAck : 0U) |
         (header.reads_in_place ? kReadsInPlace : 0U) | (header.ended_before ? kEndedBefore : 0U);
}

}  // namespace

void emit(const ChunkHeader& header, std::span<std::byte, kHeaderBytes> to) {
  uint64_t first_via = 0;
  uint32_t last_via = 0;
  std::memcpy(&first_via, header.via.data(), sizeof first_via);
  std::memcpy(&last_via, header.via.data() + sizeof first_via, sizeof last_via);
  const auto put = [&](size_t word, uint64_t value) { std::memcpy(to.data() + word * kWordBytes, &value, kWordBytes); };
  put(0, up(kMagic, 0) | up(kVersion, 8) | up(header.kind, 16) | up(flags_of(header), 24));
  put(1, up(header.payload_crc, 0) | up(header.length_bytes, 32));
  put(2, up(header.session, 0) | up(header.source, 32) | up(header.destination, 40) | up(header.hops_done, 48) |
             up(header.n_via, 56));
  put(3, first_via);
  put(4, up(last_via, 0) | up(header.sequence, 32));
  put(5, up(header.ack, 0) | up(header.group, 32) | up(header.transfer, 48));
  put(6, up(header.call, 0) | up(header.chunk, 32));
  put(7, up(header.signature, 0) | up(header.incarnation, 32) | up(header.cable_number, 48));
  put(8, up(header.credit_class, 0) | up(header.reserved, 8) | up(header.freed_small, 16) | up(header.freed_large, 32));
  const uint32_t crc = base::crc32c_of_72(to);
  std::memcpy(to.data() + kCrcAt, &crc, sizeof crc);
}

void emit(const DirectHeader& header, std::span<std::byte, kHeaderBytes> to, ChunkHeader& kept) {
  const auto at = [](auto value, unsigned bits) { return static_cast<uint64_t>(value) << bits; };
  const auto copy = std::as_writable_bytes(std::span<ChunkHeader, 1>(&kept, 1));
  const auto put = [&](size_t word, uint64_t value) {
    std::memcpy(to.data() + word * kWordBytes, &value, kWordBytes);
    std::memcpy(copy.data() + word * kWordBytes, &value, kWordBytes);
  };
  const uint64_t first = kMagic | at(kVersion, 8) | at(Kind::data, 16) | at(flags_of(header), 24);
  std::memcpy(copy.data(), &first, kWordBytes);
  put(1, at(header.payload_crc, 0) | at(header.length_bytes, 32));
  put(2, at(header.session, 0) | at(header.source, 32) | at(header.destination, 40));
  put(3, 0);
  put(4, at(header.sequence, 32));
  put(5, at(header.ack, 0) | at(header.group, 32) | at(header.transfer, 48));
  put(6, at(header.call, 0) | at(header.chunk, 32));
  put(7, at(header.signature, 0) | at(header.incarnation, 32) | at(header.cable_number, 48));
  put(8, at(header.credit_class, 0) | at(header.freed_small, 16) | at(header.freed_large, 32));
  const uint64_t sealed = first | at(base::crc32c_of_72(copy), 8 * kCrcAt);
  std::memcpy(to.data(), &sealed, kWordBytes);
}

std::optional<ChunkHeader> parse_header(std::span<const std::byte> message) {
  return parse_header(message, message.size());
}

std::optional<ChunkHeader> parse_header(std::span<const std::byte> head, size_t message_bytes) {
  std::optional<ChunkHeader> parsed;  // the only thing that is returned: made where the caller has it
  if (head.size() < kHeaderBytes || message_bytes < kHeaderBytes) {
    return parsed;
  }
  ChunkHeader& header = parsed.emplace();
  const auto copy = std::as_writable_bytes(std::span<ChunkHeader, 1>(&header, 1));
  std::memcpy(copy.data(), head.data(), copy.size());  // read once: the peer may write there
  uint64_t first = 0;
  std::memcpy(&first, copy.data(), kWordBytes);
  const auto crc = static_cast<uint32_t>(first >> 8 * kCrcAt);
  first &= UINT32_MAX;
  std::memcpy(copy.data(), &first, kWordBytes);
  constexpr unsigned kKnownFlags = kHasPayloadCrc | kWantsAck | kReadsInPlace | kEndedBefore;
  const auto kind = static_cast<uint8_t>(header.kind);
  if (static_cast<uint16_t>(first) != (kMagic | kVersion << 8) || kind < 1 || kind > 4 || first >> 24 > kKnownFlags ||
      crc != base::crc32c_of_72(copy)) {
    parsed.reset();
    return parsed;
  }
  if (header.length_bytes > message_bytes - kHeaderBytes || header.n_via > kMostVia ||
      header.hops_done > header.n_via) {
    parsed.reset();
  }
  return parsed;
}

bool has_sound_payload(const ChunkHeader& header, std::span<const std::byte> message) {
  return !header.has_payload_crc ||
         header.payload_crc ==
             (header.length_bytes == 0 ? 0 : base::crc32c(0, message.subspan(kHeaderBytes, header.length_bytes)));
}

}  // namespace ringbolt::engine
