#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>

namespace ringbolt::engine {

/// What a message on a cable is.
enum class Kind : uint8_t {
  data = 1,  ///< a chunk of a call: arrives once, in any order
  word = 2,  ///< a few bytes for the group: arrives once, in any order
  ack = 3,   ///< of received sequence numbers; carries nothing else, may get lost
  beat = 4,  ///< of the cable to its other end: heartbeat and credits; may get lost
};

/// Which chunks have a checksum of their payload.
enum class Checksums : uint8_t {
  none = 0,
  carried = 1,  ///< all but those that are read where their sender wrote them
  every = 2,
};

// What a byte tells apart.
inline constexpr uint32_t kMostRanks = 256;
/// Ranks between a chunk's source and its destination.
inline constexpr uint32_t kMostVia = 12;
inline constexpr size_t kHeaderBytes = 72;

inline constexpr uint8_t kMagic = 0xb7;
inline constexpr uint8_t kVersion = 1;

/// The first bytes of every message, little-endian (docs/formats/chunk.md). What concerns one cable is written anew for
/// each, so the header has a checksum of its own; that of the payload stays the same from end to end. Its members lie
/// as they do in the message: parse_header() copies them at once.
struct ChunkHeader {
  uint8_t magic = kMagic;
  uint8_t version = kVersion;
  Kind kind = Kind::data;
  bool has_payload_crc : 1 = false;
  bool wants_ack : 1 = false;       ///< the sender's memory runs out: acknowledge now
  bool reads_in_place : 1 = false;  ///< of this cable: who sends this reads what it receives where its sender wrote it
  bool ended_before : 1 = false;    ///< of a chunk: at its source all collectives before its call have ended
  uint32_t crc = 0;                 ///< of the header; 0 but on a cable
  uint32_t payload_crc = 0;         ///< CRC-32C
  uint32_t length_bytes = 0;        ///< of the payload; the message may be longer, padded
  uint32_t session = 0;             ///< of the ranks' meeting: nothing of another session is taken
  uint8_t source = 0;
  uint8_t destination = 0;
  uint8_t hops_done = 0;
  uint8_t n_via = 0;
  std::array<uint8_t, kMostVia> via = {};
  uint32_t sequence = 0;  ///< of data and words, from source to destination
  uint32_t ack = 0;       ///< all before it have come from the destination to the source
  uint16_t group = 0;
  uint16_t transfer = 0;
  uint32_t call = 0;
  uint32_t chunk = 0;
  uint32_t signature = 0;  ///< of the call: what its ranks must agree in

  // Of this cable.
  uint16_t incarnation = 0;   ///< of the cable's connection
  uint16_t cable_number = 0;  ///< messages of this queue pair before it, modulo 2^16
  uint8_t credit_class = 0;
  uint8_t reserved = 0;
  /// Receives of that class that the sender has freed since the connection, modulo 2^16: the two queue pairs of a cable
  /// do not wait for each other, so such a word may be hundreds of messages old when it comes.
  uint16_t freed_small = 0;
  uint16_t freed_large = 0;
  uint16_t unused = 0;

  friend bool operator==(const ChunkHeader&, const ChunkHeader&) = default;
};
static_assert(sizeof(ChunkHeader) == kHeaderBytes && std::is_trivially_copyable_v<ChunkHeader>);
static_assert(offsetof(ChunkHeader, kind) == 2 && offsetof(ChunkHeader, crc) == 4);
static_assert(offsetof(ChunkHeader, payload_crc) == 8 && offsetof(ChunkHeader, length_bytes) == 12);
static_assert(offsetof(ChunkHeader, session) == 16 && offsetof(ChunkHeader, source) == 20);
static_assert(offsetof(ChunkHeader, destination) == 21 && offsetof(ChunkHeader, hops_done) == 22);
static_assert(offsetof(ChunkHeader, n_via) == 23 && offsetof(ChunkHeader, via) == 24);
static_assert(offsetof(ChunkHeader, sequence) == 36 && offsetof(ChunkHeader, ack) == 40);
static_assert(offsetof(ChunkHeader, group) == 44 && offsetof(ChunkHeader, transfer) == 46);
static_assert(offsetof(ChunkHeader, call) == 48 && offsetof(ChunkHeader, chunk) == 52);
static_assert(offsetof(ChunkHeader, signature) == 56 && offsetof(ChunkHeader, incarnation) == 60);
static_assert(offsetof(ChunkHeader, cable_number) == 62 && offsetof(ChunkHeader, credit_class) == 64);
static_assert(offsetof(ChunkHeader, freed_small) == 66 && offsetof(ChunkHeader, freed_large) == 68);

/// Writes the header, checksum included.
void emit(const ChunkHeader& header, std::span<std::byte, kHeaderBytes> to);

/// What the header of a chunk says that goes to a neighbour, so that there are no ranks between: the same fields, apart
/// from each other, so that they are put together in registers.
struct DirectHeader {
  bool has_payload_crc = false;
  bool wants_ack = false;
  bool reads_in_place = false;
  bool ended_before = false;
  uint32_t payload_crc = 0;
  uint32_t length_bytes = 0;
  uint32_t session = 0;
  uint8_t source = 0;
  uint8_t destination = 0;
  uint32_t sequence = 0;
  uint32_t ack = 0;
  uint16_t group = 0;
  uint16_t transfer = 0;
  uint32_t call = 0;
  uint32_t chunk = 0;
  uint32_t signature = 0;
  uint16_t incarnation = 0;
  uint16_t cable_number = 0;
  uint8_t credit_class = 0;
  uint16_t freed_small = 0;
  uint16_t freed_large = 0;
};
/// Writes it likewise, and the same header without the checksum to `kept`.
void emit(const DirectHeader& header, std::span<std::byte, kHeaderBytes> to, ChunkHeader& kept);

/// The header of a message; nothing unless it is whole, of our version, and consistent: payload within `message`, kind
/// and lengths known. Any bytes are safe to pass. The payload is not looked at: see has_sound_payload().
std::optional<ChunkHeader> parse_header(std::span<const std::byte> message);
/// The same of a message of so many bytes, of which `head` has the first ones.
/// `head` may lie in memory that the peer writes to: it is copied once, and looked at then.
std::optional<ChunkHeader> parse_header(std::span<const std::byte> head, size_t message_bytes);

/// Whether the payload is what its checksum says; true without one.
/// `header` is what parse_header() has made of that message.
bool has_sound_payload(const ChunkHeader& header, std::span<const std::byte> message);

}  // namespace ringbolt::engine
