#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "transport/window_bits.h"
#include "wire/packet.h"
#include "wire/selective_ack.h"

namespace ringbolt::transport {

/// Packets that came too early, until what is missing before them has come. Holds kWindowPackets.
///
/// It keeps copies: placing a WRITE early would show the program bytes that precede data which isn't there yet, a SEND
/// has no receive assigned before its turn, and references into the receive buffers would pin 64 KiB of them for each
/// late packet. A copy costs only under loss. The memory is asked for once and not touched before something is held, so
/// a queue pair that loses nothing costs address space; slots are reused last in, first out, so that one which loses
/// little stays small. Not thread-safe.
/// Owned by a responder whose peer is one of ours. Packets are kept as they came: they are checked when their turn
/// comes.
class ReorderBuffer {
 public:
  /// Throws std::bad_alloc.
  explicit ReorderBuffer(uint32_t mtu_bytes);

  /// Keeps a packet with this sequence; what its sender repeats takes the place of what was held. False when the
  /// payload is longer than the MTU or it was held already. All that is held lies within a window.
  bool hold(uint64_t sequence, const wire::PacketView& packet);
  bool has(uint64_t sequence) const { return held_.test(sequence); }
  bool is_empty() const { return !held_.any(); }
  /// has(sequence) holds. Stays valid until release().
  wire::PacketView at(uint64_t sequence) const;
  /// What is held of from..to, at most the first window of it.
  void release(uint64_t from, uint64_t to);
  void clear();
  /// Which of the packets after `missing` came: those before `expected`, and what is held.
  wire::SelectiveAck describe(uint64_t missing, uint64_t expected) const;

 private:
  struct Slot {
    wire::Headers headers;
    uint32_t length = 0;
  };
  size_t mtu_bytes_;
  WindowBits held_;
  std::vector<uint16_t> slot_of_;  ///< by sequence
  std::vector<uint16_t> free_;
  std::vector<Slot> slots_;
  std::unique_ptr<std::byte[]> bytes_;
};

}  // namespace ringbolt::transport
