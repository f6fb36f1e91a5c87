#pragma once

#include <algorithm>
#include <cstdint>

namespace ringbolt::rsocket {

/// The ring that the peer writes the stream into, as two halves. The peer fills a half it was offered from front to
/// back, then the next; a half is offered again when all of it has been read. The peer may always have one half more
/// than it is filling. Counts only; it owns no memory. Not thread-safe.
/// In bytes, below 2^31 for a half, so that no sum wraps.
class ReceiveRing {
 public:
  /// The first half counts as offered: its address goes with the connection data. `half_bytes` > 0.
  explicit ReceiveRing(uint32_t half_bytes = 1) : half_(half_bytes), writable_(half_bytes) {}

  uint32_t half_bytes() const { return half_; }
  uint32_t bytes() const { return 2 * half_; }

  /// The peer says it wrote `length` bytes. False: more than it was offered, or across the end of a half.
  /// `length` is the peer's word.
  bool arrived(uint32_t length) {
    if (length > writable_ || length > half_ - write_ % half_) {
      return false;
    }
    writable_ -= length;
    readable_ += length;
    write_ = advanced(write_, length);
    return true;
  }

  uint32_t readable() const { return readable_; }
  uint32_t read_offset() const { return read_; }
  /// How much of it lies in one piece at read_offset() + `skip`; `skip` is at most readable().
  uint32_t contiguous(uint32_t skip = 0) const { return std::min(readable_ - skip, bytes() - advanced(read_, skip)); }
  uint32_t offset(uint32_t skip) const { return advanced(read_, skip); }
  /// The first `length` readable bytes have been copied out.
  void consume(uint32_t length) {
    readable_ -= length;
    read_ = advanced(read_, length);
  }

  /// A half has nothing unread in it and is not offered.
  bool has_free_half() const { return bytes() - readable_ - writable_ >= half_; }
  /// Offers it. Returns where it begins.
  uint32_t offer() {
    const uint32_t at = next_offer_;
    next_offer_ = next_offer_ == 0 ? half_ : 0;
    writable_ += half_;
    return at;
  }

 private:
  uint32_t advanced(uint32_t from, uint32_t by) const {
    const uint32_t sum = from + by;
    return sum >= bytes() ? sum - bytes() : sum;
  }

  uint32_t half_;
  uint32_t writable_;  ///< offered, and not yet written
  uint32_t readable_ = 0;
  uint32_t read_ = 0;
  uint32_t write_ = 0;
  uint32_t next_offer_ = half_;
};

}  // namespace ringbolt::rsocket
