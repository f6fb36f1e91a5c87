#pragma once

#include <cstdint>

namespace ringbolt::rsocket {

/// Places in the buffer that bytes lie in while they are sent: handed out in order, given back in order. Counts only;
/// it owns no memory. Not thread-safe.
/// In bytes.
class StagingRing {
 public:
  explicit StagingRing(uint32_t bytes = 0) : bytes_(bytes), free_(bytes) {}

  uint32_t free_bytes() const { return free_; }
  /// Takes `length` bytes, which fit before the end, and says where they begin.
  uint32_t take(uint32_t length) {
    const uint32_t at = next_;
    next_ = next_ + length == bytes_ ? 0 : next_ + length;
    free_ -= length;
    return at;
  }
  /// Whether `length` bytes fit in one piece, if the rest before the end is passed over where it is too short.
  /// `length`: a quarter of the ring at most, so that it fits some time.
  bool fits_whole(uint32_t length) const { return free_ >= length + padding(length); }
  /// What would be passed over.
  uint32_t padding(uint32_t length) const { return bytes_ - next_ < length ? bytes_ - next_ : 0; }
  /// The oldest `length` bytes are sent.
  void give_back(uint32_t length) { free_ += length; }

 private:
  uint32_t bytes_;
  uint32_t free_;
  uint32_t next_ = 0;
};

}  // namespace ringbolt::rsocket
