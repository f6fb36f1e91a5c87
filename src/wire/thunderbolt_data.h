#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"

/// Data frames of the native Thunderbolt verbs: a header of 48 bytes and one fragment of a message. Layout, rules and
/// source: docs/formats/thunderbolt.md.
namespace ringbolt::wire {

inline constexpr size_t kThunderboltFrameBytes = 4096;
inline constexpr size_t kThunderboltHeaderBytes = 48;
inline constexpr uint32_t kThunderboltFragmentBytes = kThunderboltFrameBytes - kThunderboltHeaderBytes;
inline constexpr uint32_t kThunderboltMessageBytes = 16U << 20U;

enum class ThunderboltOp : uint8_t {
  send = 1,
  send_ack = 2,  ///< answers a SEND or a WRITE; `immediate` is an AckCode
  write = 3,
  write_immediate = 4,
  receive_credit = 5,
  send_immediate = 6,
  read_request = 7,
  read_response = 8,
  path_credit = 9,
  read_ack = 10,
  management = 11,
};

/// Of `send_ack`; read_ack says 1 for "again".
enum class ThunderboltAck : uint32_t { ok = 0, not_ready = 1, error = 2 };

// Bits of ThunderboltFrame::flags.
inline constexpr uint8_t kThunderboltLast = 1;
inline constexpr uint8_t kThunderboltSolicited = 2;
inline constexpr uint8_t kThunderboltRawStream = 4;  ///< the payload follows in frames without headers

/// A value; little-endian on the cable. Nothing here has been tried with a driver: docs/formats/thunderbolt.md.
struct ThunderboltFrame {
  ThunderboltOp op = ThunderboltOp::send;
  uint8_t flags = 0;
  uint32_t destination_qp = 0;
  uint32_t source_qp = 0;
  uint32_t psn = 0;        ///< 24 bits; one for all frames of a message
  uint32_t length = 0;     ///< payload bytes of this frame; of the raw stream behind it
  uint32_t immediate = 0;  ///< by opcode: total length, immediate data, acknowledgement or credits
  uint64_t address = 0;    ///< base of the message in the target's memory
  uint32_t key = 0;        ///< by opcode: remote key, immediate data of send_immediate, error of read_response
  uint32_t offset = 0;     ///< of this fragment in its message
  friend bool operator==(const ThunderboltFrame&, const ThunderboltFrame&) = default;
};

struct ThunderboltView {
  ThunderboltFrame frame;
  std::span<const std::byte> payload;  ///< points into the frame; empty where a raw stream follows
};

/// Errors: EBADMSG (too short or too long, wrong magic or header size, unknown opcode or flag, a PSN of more than 24
/// bits, a length that the frame does not hold), EPROTONOSUPPORT (another version).
base::Result<ThunderboltView> parse_thunderbolt_frame(std::span<const std::byte> frame);

/// The header alone; the payload goes behind it.
void emit(const ThunderboltFrame& frame, std::span<std::byte, kThunderboltHeaderBytes> out);

/// Whether the frame is a proper fragment of a message of `total` bytes: all but the last are full, the last one alone
/// says so, and an empty message is one empty last frame. For messages without a raw stream.
bool is_fragment_of(const ThunderboltFrame& frame, uint32_t total);

}  // namespace ringbolt::wire
