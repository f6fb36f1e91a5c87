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

static_assert(std::endian::native == std::endian::little, "headers are little-endian, as they lie in memory");

// The header is put together, and taken apart, by words: fields stored one by one, or words copied on as wider ones,
// could not be read back before everything that was written earlier, the payload too, has left the core.
constexpr size_t kWordBytes = sizeof(uint64_t);
using Words = std::array<uint64_t, kHeaderBytes / kWordBytes>;
constexpr size_t kCrcAt = 4;  // zero while it is computed

/// A field's place in its word, `bits` up. It is read by itself: the compiler must not read two neighbours as a word.
template <class T>
uint64_t up(T value, unsigned bits) {
  auto word = static_cast<uint64_t>(value);
  asm("" : "+r"(word));
  return word << bits;
}

}  // namespace

void emit(const ChunkHeader& header, std::span<std::byte, kHeaderBytes> to) {
  const unsigned flags = (header.has_payload_crc ? kHasPayloadCrc : 0U) | (header.wants_ack ? kWantsAck : 0U) |
                         (header.reads_in_place ? kReadsInPlace : 0U);
  uint64_t first_via = 0;
  uint32_t last_via = 0;
  std::memcpy(&first_via, header.via.data(), sizeof first_via);
  std::memcpy(&last_via, header.via.data() + sizeof first_via, sizeof last_via);
  const auto put = [&](size_t word, uint64_t value) { std::memcpy(to.data() + word * kWordBytes, &value, kWordBytes); };
  put(0, up(kMagic, 0) | up(kVersion, 8) | up(header.kind, 16) | up(flags, 24));
  put(1, up(header.payload_crc, 0) | up(header.length_bytes, 32));
  put(2, up(header.session, 0) | up(header.source, 32) | up(header.destination, 40) | up(header.hops_done, 48) |
             up(header.n_via, 56));
  put(3, first_via);
  put(4, up(last_via, 0) | up(header.sequence, 32));
  put(5, up(header.ack, 0) | up(header.group, 32) | up(header.transfer, 48));
  put(6, up(header.call, 0) | up(header.chunk, 32));
  put(7, up(header.signature, 0) | up(header.incarnation, 32) | up(header.cable_number, 48));
  put(8, up(header.credit_class, 0) | up(header.reserved, 8) | up(header.freed_small, 16) | up(header.freed_large, 32));
  const uint32_t crc = base::crc32c(0, to);
  std::memcpy(to.data() + kCrcAt, &crc, sizeof crc);
}

std::optional<ChunkHeader> parse_header(std::span<const std::byte> message) {
  return parse_header(message, message.size());
}

std::optional<ChunkHeader> parse_header(std::span<const std::byte> head, size_t message_bytes) {
  std::optional<ChunkHeader> parsed;  // the only thing that is returned: made where the caller has it
  if (head.size() < kHeaderBytes || message_bytes < kHeaderBytes) {
    return parsed;
  }
  Words words;  // read once: the peer may write there
  std::memcpy(words.data(), head.data(), kHeaderBytes);
  const auto kind = static_cast<uint8_t>(words[0] >> 16);
  const auto flags = static_cast<uint8_t>(words[0] >> 24);
  const auto crc = static_cast<uint32_t>(words[0] >> 32);
  words[0] &= ~(uint64_t{UINT32_MAX} << 8 * kCrcAt);
  if (static_cast<uint16_t>(words[0]) != (kMagic | kVersion << 8) || kind < 1 || kind > 4 ||
      flags > (kHasPayloadCrc | kWantsAck | kReadsInPlace) ||
      crc != base::crc32c(0, std::as_bytes(std::span(words)))) {
    return parsed;
  }
  ChunkHeader& header = parsed.emplace();
  header.kind = static_cast<Kind>(kind);
  header.has_payload_crc = (flags & kHasPayloadCrc) != 0;
  header.wants_ack = (flags & kWantsAck) != 0;
  header.reads_in_place = (flags & kReadsInPlace) != 0;
  header.payload_crc = static_cast<uint32_t>(words[1]);
  header.length_bytes = static_cast<uint32_t>(words[1] >> 32);
  header.session = static_cast<uint32_t>(words[2]);
  header.source = static_cast<uint8_t>(words[2] >> 32);
  header.destination = static_cast<uint8_t>(words[2] >> 40);
  header.hops_done = static_cast<uint8_t>(words[2] >> 48);
  header.n_via = static_cast<uint8_t>(words[2] >> 56);
  const auto last_via = static_cast<uint32_t>(words[4]);
  std::memcpy(header.via.data(), &words[3], sizeof words[3]);
  std::memcpy(header.via.data() + sizeof words[3], &last_via, sizeof last_via);
  header.sequence = static_cast<uint32_t>(words[4] >> 32);
  header.ack = static_cast<uint32_t>(words[5]);
  header.group = static_cast<uint16_t>(words[5] >> 32);
  header.transfer = static_cast<uint16_t>(words[5] >> 48);
  header.call = static_cast<uint32_t>(words[6]);
  header.chunk = static_cast<uint32_t>(words[6] >> 32);
  header.signature = static_cast<uint32_t>(words[7]);
  header.incarnation = static_cast<uint16_t>(words[7] >> 32);
  header.cable_number = static_cast<uint16_t>(words[7] >> 48);
  header.credit_class = static_cast<uint8_t>(words[8]);
  header.reserved = static_cast<uint8_t>(words[8] >> 8);
  header.freed_small = static_cast<uint16_t>(words[8] >> 16);
  header.freed_large = static_cast<uint16_t>(words[8] >> 32);
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
