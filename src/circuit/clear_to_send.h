#pragma once

// Hot path: emit and parse do not allocate, lock or wait.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "circuit/frame_header.h"
#include "circuit/paths.h"
#include "circuit/receive_queue.h"

namespace ringbolt::circuit {

/// Of a frame of kind `clear_to_send`, header included.
inline constexpr size_t kClearToSendBytes = 512;
/// Receives that one frame tells of at most.
inline constexpr uint32_t kMostPerClearToSend = 16;

/// One buffer of a receive as the sender is told of it.
struct ClearedPart {
  int32_t tag = 0;
  bool is_direct = false;  ///< it may be written to; what follows is there only then
  uint64_t capacity = 0;
  uint64_t address = 0;
  std::array<uint32_t, kMostRails> keys{};  ///< as `rails` of the frame
  friend bool operator==(const ClearedPart&, const ClearedPart&) = default;
};
struct ClearedReceive {
  uint32_t n_parts = 0;
  std::array<ClearedPart, kMostParts> parts{};
};

/// A receiver's receives in the order of their posting, with numbers in a row: all that it has posted since a base. A
/// base says that what was posted before it is full, and that of messages those from `base_message` on are not matched
/// yet. docs/formats/circuit.md. Numbers of receives and messages wrap around after 2^32. Some 8 KiB: made once and
/// reused, never on the stack of a data call.
struct ClearToSend {
  uint32_t first = 0;  ///< number of the first receive
  bool is_base = false;
  uint32_t base_message = 0;
  uint32_t n_rails = 0;
  std::array<uint16_t, kMostRails> rails{};  ///< by which may be written
  uint32_t n_receives = 0;
  std::array<ClearedReceive, kMostPerClearToSend> receives;
};

/// Bytes of one receive in a frame with so many rails.
size_t bytes_of(const ClearedReceive& receive, uint32_t n_rails);
/// What fits beside the rails.
inline size_t room_for_receives(uint32_t n_rails) {
  return kClearToSendBytes - kShortHeaderBytes - 4 - 2 * size_t{n_rails};
}

/// Writes the whole frame, whose header is filled in but for what stands in the frame; returns its length. The receives
/// must fit.
uint32_t emit(FrameHeader header, const ClearToSend& clearance, std::span<std::byte, kClearToSendBytes> to);
/// Of a frame whose header has been parsed; `payload` are the bytes behind it. False: it is none; then `clearance` is
/// anything. Any bytes are safe.
bool parse_clear_to_send(const FrameHeader& header, std::span<const std::byte> payload, ClearToSend& clearance);

}  // namespace ringbolt::circuit
