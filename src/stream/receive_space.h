#pragma once

#include <algorithm>
#include <cstdint>

#include "base/assert.h"
#include "stream/close_reason.h"

namespace ringbolt::stream {

/// Our receive buffers, one behind the other in a ring: how much of them the peer has filled and how much the program
/// has taken. The peer knows one at a time and never wraps; it is told of the next one when it has filled that to the
/// last byte and another one is free. With one buffer that is when all of it was consumed, as stock peers have it
/// (section 1.4 of the protocol); with more the peer goes on writing while the program reads. Hot path. Pure. Not
/// thread-safe.
/// No memory of its own: the bytes are the endpoint's.
class ReceiveSpace {
 public:
  /// Of so many buffers of so many bytes each: 4 GiB at most in all.
  explicit ReceiveSpace(uint32_t length, uint32_t buffers = 1)
      : length_(length), buffers_(buffers), free_(buffers), end_(length * buffers) {}

  /// Of one buffer.
  uint32_t length() const { return length_; }
  bool is_announced() const { return is_announced_; }
  /// Where the next unread byte lies in the ring, how many there are, and how many of them before the ring's end.
  uint32_t offset() const { return offset_; }
  uint32_t unread() const { return unread_; }
  uint32_t contiguous() const { return std::min(unread_, end_ - offset_); }

  /// Whether the peer has filled what it was told of and there is a buffer to give it. Not before the first.
  bool wants_announcement() const { return is_announced_ && left_ == 0 && free_ > 0; }
  /// The peer is told of the next buffer. Returns where in the ring that begins.
  /// Only if the last one is full and another is free; it is asserted.
  uint32_t announce() {
    RINGBOLT_ASSERT(left_ == 0 && free_ > 0);
    is_announced_ = true;
    left_ = length_;
    --free_;
    const uint32_t begin = next_ * length_;
    next_ = (next_ + 1) % buffers_;
    return begin;
  }
  /// A message that says that `immediate` bytes have come since the last, `write_bytes` of them by itself. By
  /// comparison with what is left: a sum of two 32-bit numbers can wrap.
  CloseReason take(uint32_t immediate, uint32_t write_bytes) {
    if (!is_announced_ || immediate > left_) {
      return CloseReason::imm_overrun;
    }
    if (immediate < write_bytes) {
      return CloseReason::imm_underrun;
    }
    left_ -= immediate;
    unread_ += immediate;
    return CloseReason::none;
  }
  /// The program has taken `count` of the unread bytes.
  void consume(uint32_t count) {
    RINGBOLT_ASSERT(count <= unread_);
    unread_ -= count;
    offset_ = count < end_ - offset_ ? offset_ + count : count - (end_ - offset_);
    for (consumed_ += count; consumed_ >= length_; consumed_ -= length_) {
      ++free_;
    }
  }

 private:
  uint32_t length_;
  uint32_t buffers_;
  uint32_t free_;      // buffers that the peer does not know and that hold nothing unread
  uint32_t end_;       // of the ring
  uint32_t next_ = 0;  // buffer to announce
  uint32_t left_ = 0;  // bytes that the peer may still write
  uint32_t unread_ = 0;
  uint32_t offset_ = 0;
  uint64_t consumed_ = 0;  // bytes of the buffer at the offset
  bool is_announced_ = false;
};

}  // namespace ringbolt::stream
