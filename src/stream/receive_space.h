#pragma once

#include <cstdint>

#include "base/assert.h"
#include "stream/close_reason.h"

namespace ringbolt::stream {

/// Our receive buffer: how much of it the peer has filled and how much the program has taken. The peer never wraps; the
/// buffer begins anew when exactly all of it was consumed, which is the only flow control (section 1.4 of the
/// protocol). Hot path. Pure. Not thread-safe.
class ReceiveSpace {
 public:
  explicit ReceiveSpace(uint32_t length) : length_(length) {}

  uint32_t length() const { return length_; }
  bool is_announced() const { return is_announced_; }
  /// Where the next unread byte lies, and how many there are.
  uint32_t offset() const { return consumed_; }
  uint32_t unread() const { return written_ - consumed_; }

  /// The peer is told of the buffer, at first or after all of it was consumed.
  void announce() {
    RINGBOLT_ASSERT(!is_announced_ || consumed_ == length_);
    is_announced_ = true;
    written_ = consumed_ = 0;
  }
  /// A message that says that `immediate` bytes have come since the last, `write_bytes` of them by itself. By
  /// subtraction: a sum of two 32-bit numbers can wrap.
  CloseReason take(uint32_t immediate, uint32_t write_bytes) {
    if (!is_announced_ || immediate > length_ - written_) {
      return CloseReason::imm_overrun;
    }
    if (immediate < write_bytes) {
      return CloseReason::imm_underrun;
    }
    written_ += immediate;
    return CloseReason::none;
  }
  /// The program has taken `count` of the unread bytes. True: that were the last of the buffer, which can be announced.
  bool consume(uint32_t count) {
    RINGBOLT_ASSERT(count <= unread());
    consumed_ += count;
    return consumed_ == length_;
  }

 private:
  uint32_t length_;
  uint32_t written_ = 0;   // offset behind what has come
  uint32_t consumed_ = 0;  // offset behind what was taken
  bool is_announced_ = false;
};

}  // namespace ringbolt::stream
