#pragma once

// Hot path: emit() and parse_frame() do not allocate, lock or wait.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "base/little_endian.h"

namespace ringbolt::circuit {

/// What a frame on a rail is. The numbers are those on the wire.
enum class FrameKind : uint8_t {
  hello = 1,          ///< sender to receiver: the first on a rail
  hello_ack = 2,      ///< its answer: both directions work
  whole = 3,          ///< a message
  piece = 4,          ///< a piece of a longer one
  taken = 5,          ///< receiver to sender: so many frames of this rail have been taken
  clear_to_send = 6,  ///< receiver to sender: where messages may be written to (clear_to_send.h)
};

/// Of all kinds but pieces. With 8 bytes of payload a frame fits into what our own device passes in one line of memory.
inline constexpr size_t kShortHeaderBytes = 32;
inline constexpr size_t kFrameHeaderBytes = 64;  ///< of pieces
/// Of a kind that parse_frame() has not checked as well: unknown ones count as short.
constexpr size_t header_bytes_of(FrameKind kind) {
  return kind == FrameKind::piece ? kFrameHeaderBytes : kShortHeaderBytes;
}
/// Of one frame: a multiple of 128 bytes, so that no line of 128 bytes of a message lies in two frames.
// Bytes. See kSlotBytes (circuit.h), which is this and a header.
inline constexpr uint32_t kPayloadBytes = 64 * 1024;
/// Of a piece that is written to its place: likewise a multiple of kPayloadBytes, for it takes a number for each of
/// these, so that it can be sent as so many frames instead.
inline constexpr uint32_t kWrittenBytes = 4 * kPayloadBytes;
constexpr uint32_t sequences_of(uint32_t length_bytes) { return (length_bytes + kPayloadBytes - 1) / kPayloadBytes; }

/// The first bytes of every message on a rail, little-endian. docs/formats/circuit.md. A value; which fields count
/// depends on the kind. Numbers wrap around after 2^32.
struct FrameHeader {
  FrameKind kind = FrameKind::whole;
  bool has_checksum = false;
  uint16_t rail = 0;
  uint32_t circuit = 0;   ///< the lower half of its id
  uint32_t length = 0;    ///< bytes of payload
  uint32_t sequence = 0;  ///< of messages and pieces: the circuit's frames in the order of their first sending
  uint32_t message = 0;   ///< the circuit's messages in order
  uint32_t taken = 0;     ///< of `taken`: messages and pieces of this rail so far
  int32_t tag = 0;
  uint64_t offset = 0;      ///< of the payload in its message
  uint64_t total = 0;       ///< bytes of the message
  uint32_t clearance = 0;   ///< of a piece that is written: which clearance the sender follows
  uint32_t checksum = 0;    ///< CRC-32C of the payload
  bool is_written = false;  ///< the payload is not here: a WRITE before this frame has brought it to its place
  bool was_tried = false;   ///< `tried_rail` may have written the payload before, and has been given up
  uint16_t tried_rail = 0;
  uint8_t heard = 0;         ///< of messages and pieces: the lowest bits of the number of the clearance that comes next
  bool is_numbered = false;  ///< of hellos and pieces: of a rail that may lose frames, so each says which it is
  uint32_t number = 0;       ///< of such a piece, among its rail's
  uint32_t come = 0;         ///< of `taken` on such a rail: bit i says that frame `taken` + i has come
  friend bool operator==(const FrameHeader&, const FrameHeader&) = default;
};

/// Where what stands in a header.
namespace frame_layout {
inline constexpr uint16_t kMagic = 0x4652;  // "RF"
inline constexpr uint8_t kVersion = 1;
inline constexpr uint8_t kHasChecksum = 1;
inline constexpr uint8_t kIsWritten = 2;   // of pieces
inline constexpr uint8_t kWasTried = 4;    // likewise
inline constexpr uint8_t kIsNumbered = 8;  // likewise, and of hellos

inline constexpr size_t kMagicAt = 0;
inline constexpr size_t kVersionAt = 2;
inline constexpr size_t kKindAt = 3;
inline constexpr size_t kFlagsAt = 4;
inline constexpr size_t kHeardAt = 5;
inline constexpr size_t kRailAt = 6;
inline constexpr size_t kCircuitAt = 8;
inline constexpr size_t kLengthAt = 12;
inline constexpr size_t kSequenceAt = 16;  // or which have come
inline constexpr size_t kMessageAt = 20;   // or how many have been taken
inline constexpr size_t kTagAt = 24;
inline constexpr size_t kChecksumAt = 28;
static_assert(kChecksumAt + 4 == kShortHeaderBytes);
// Of pieces:
inline constexpr size_t kOffsetAt = 32;
inline constexpr size_t kTotalAt = 40;
inline constexpr size_t kClearanceAt = 48;  // of a piece that is written: the clearance that it follows
inline constexpr size_t kTriedAt = 52;
inline constexpr size_t kNumberAt = 54;
inline constexpr size_t kReservedAt = 58;
static_assert(kReservedAt + 6 == kFrameHeaderBytes);
}  // namespace frame_layout

/// Writes header_bytes_of(header.kind) bytes. Fields that are out of range are the caller's mistake, and written as
/// they are.
// `at` must have room for them.
inline void emit(const FrameHeader& header, std::byte* at) {
  using namespace frame_layout;
  const std::span<std::byte> to(at, header_bytes_of(header.kind));
  base::put_le<uint16_t>(to, kMagicAt, kMagic);
  base::put_le<uint8_t>(to, kVersionAt, kVersion);
  base::put_le<uint8_t>(to, kKindAt, static_cast<uint8_t>(header.kind));
  base::put_le<uint8_t>(
      to, kFlagsAt,
      static_cast<uint8_t>((header.has_checksum ? kHasChecksum : 0) | (header.is_written ? kIsWritten : 0) |
                           (header.was_tried ? kWasTried : 0) | (header.is_numbered ? kIsNumbered : 0)));
  base::put_le<uint8_t>(to, kHeardAt, header.heard);
  base::put_le<uint16_t>(to, kRailAt, header.rail);
  base::put_le<uint32_t>(to, kCircuitAt, header.circuit);
  base::put_le<uint32_t>(to, kLengthAt, header.length);
  base::put_le<uint32_t>(to, kSequenceAt, header.kind == FrameKind::taken ? header.come : header.sequence);
  base::put_le<uint32_t>(to, kMessageAt, header.kind == FrameKind::taken ? header.taken : header.message);
  base::put_le<uint32_t>(to, kTagAt, static_cast<uint32_t>(header.tag));
  base::put_le<uint32_t>(to, kChecksumAt, header.checksum);
  if (header.kind == FrameKind::piece) {
    base::put_le<uint64_t>(to, kOffsetAt, header.offset);
    base::put_le<uint64_t>(to, kTotalAt, header.total);
    base::put_le<uint32_t>(to, kClearanceAt, header.clearance);
    base::put_le<uint16_t>(to, kTriedAt, header.tried_rail);
    base::put_le<uint32_t>(to, kNumberAt, header.number);
    // Zero today, and not looked at by parse_frame(): room for a later version.
    std::memset(at + kReservedAt, 0, kFrameHeaderBytes - kReservedAt);
  }
}

/// Whether parse_frame() would find a whole message without flags, which most frames of short messages are; fields are
/// then where frame_layout says.
// One comparison for magic, version and kind, which are the first four bytes.
inline bool is_plain_whole(std::span<const std::byte> head, size_t frame_bytes) {
  using namespace frame_layout;
  constexpr uint32_t kBegin =
      kMagic | uint32_t{kVersion} << 8U * kVersionAt | uint32_t{static_cast<uint8_t>(FrameKind::whole)} << 8U * kKindAt;
  if (head.size() < kShortHeaderBytes || base::get_le<uint32_t>(head, kMagicAt) != kBegin ||
      base::get_le<uint8_t>(head, kFlagsAt) != 0) {
    return false;
  }
  const auto length = base::get_le<uint32_t>(head, kLengthAt);
  return length <= kPayloadBytes && kShortHeaderBytes + length <= frame_bytes;
}

/// Of a frame of `frame_bytes`, of which `head` has the first ones, the header at least. Nothing unless it is of our
/// version, known and consistent: payload within the frame and within the message. Any bytes are safe. Hot path.
inline std::optional<FrameHeader> parse_frame(std::span<const std::byte> head, size_t frame_bytes) {
  using namespace frame_layout;
  if (head.size() < kShortHeaderBytes || base::get_le<uint16_t>(head, kMagicAt) != kMagic ||
      base::get_le<uint8_t>(head, kVersionAt) != kVersion) {
    return std::nullopt;
  }
  FrameHeader header;
  header.kind = static_cast<FrameKind>(base::get_le<uint8_t>(head, kKindAt));
  const size_t header_bytes = header_bytes_of(header.kind);
  const auto flags = base::get_le<uint8_t>(head, kFlagsAt);
  const uint8_t most_flags = header.kind == FrameKind::piece   ? kHasChecksum | kIsWritten | kWasTried | kIsNumbered
                             : header.kind == FrameKind::hello ? kHasChecksum | kIsNumbered
                                                               : kHasChecksum;
  const bool is_known =
      header.kind >= FrameKind::hello && header.kind <= FrameKind::clear_to_send && (flags & ~most_flags) == 0;
  if (!is_known || head.size() < header_bytes) {
    return std::nullopt;
  }
  header.has_checksum = (flags & kHasChecksum) != 0;
  header.is_written = (flags & kIsWritten) != 0;
  header.was_tried = (flags & kWasTried) != 0;
  header.is_numbered = (flags & kIsNumbered) != 0;
  header.heard = base::get_le<uint8_t>(head, kHeardAt);
  header.rail = base::get_le<uint16_t>(head, kRailAt);
  header.circuit = base::get_le<uint32_t>(head, kCircuitAt);
  header.length = base::get_le<uint32_t>(head, kLengthAt);
  // The two kinds share the place: a "taken" has neither a sequence nor a message.
  (header.kind == FrameKind::taken ? header.come : header.sequence) = base::get_le<uint32_t>(head, kSequenceAt);
  (header.kind == FrameKind::taken ? header.taken : header.message) = base::get_le<uint32_t>(head, kMessageAt);
  header.tag = static_cast<int32_t>(base::get_le<uint32_t>(head, kTagAt));
  header.checksum = base::get_le<uint32_t>(head, kChecksumAt);
  // Of a whole message; a piece says its own below.
  header.total = header.length;
  const uint32_t payload_bytes = header.is_written ? 0 : header.length;
  // No overflow: the length is below 2^18 once the first condition is false.
  if (header.length > (header.is_written ? kWrittenBytes : kPayloadBytes) ||
      header_bytes + payload_bytes > frame_bytes) {
    return std::nullopt;
  }
  if (header.kind == FrameKind::piece) {
    header.offset = base::get_le<uint64_t>(head, kOffsetAt);
    header.total = base::get_le<uint64_t>(head, kTotalAt);
    header.clearance = base::get_le<uint32_t>(head, kClearanceAt);
    header.tried_rail = base::get_le<uint16_t>(head, kTriedAt);
    header.number = base::get_le<uint32_t>(head, kNumberAt);
    // Numbered frames have the longer header, those of empty messages too.
    const bool is_empty = header.length == 0 && !(header.is_numbered && header.total == 0);
    if (is_empty || (header.is_numbered && header.is_written) || header.offset > header.total ||
        header.length > header.total - header.offset) {
      return std::nullopt;
    }
  }
  return header;
}

}  // namespace ringbolt::circuit
