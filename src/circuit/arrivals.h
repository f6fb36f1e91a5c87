#pragma once

#include <bitset>
#include <cstdint>

namespace ringbolt::circuit {

/// Which frames of a circuit have come: those that were under way on a rail that has failed come again by another one,
/// and may come twice. Not thread-safe. Numbers are those of the circuit (FrameHeader::sequence), which wrap around
/// after 2^32.
class Arrivals {
 public:
  /// More frames than can be under way at a time, by far.
  // A power of two, so that places stay right where numbers wrap around.
  static constexpr uint32_t kWindow = 1024;

  /// Whether it has come before. One that is farther ahead than any sender may be counts as known, too.
  bool is_known(uint32_t sequence) const {
    const uint32_t ahead = sequence - first_;
    return ahead >= kWindow || has_come_[sequence % kWindow];
  }
  /// Of one that is_known() does not know: any other would be taken for a later one.
  void note(uint32_t sequence) {
    if (sequence == first_) {
      note_first();
    } else {
      has_come_[sequence % kWindow] = true;
    }
  }
  /// The first one that was missing.
  void note_first() {
    ++first_;
    while (has_come_[first_ % kWindow]) {
      has_come_[first_ % kWindow] = false;
      ++first_;
    }
  }
  /// All before it have come.
  uint32_t first_missing() const { return first_; }

 private:
  uint32_t first_ = 0;
  // [sequence % kWindow], of those behind first_.
  std::bitset<kWindow> has_come_;
};

}  // namespace ringbolt::circuit
