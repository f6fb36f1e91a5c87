#pragma once

#include <array>
#include <cstdint>

namespace ringbolt::engine {

// Numbers of what one rank sends to another, over whatever cables. They wrap; comparisons are of differences.

/// At most so many numbers may be on their way unacknowledged: half of what a receiver remembers.
inline constexpr uint32_t kSequenceWindow = 512;

/// a before b, both within half of all numbers.
constexpr bool is_before(uint32_t a, uint32_t b) { return static_cast<int32_t>(a - b) < 0; }

/// Which numbers have come. Pure. Not thread-safe.
/// Part of a flow. What a peer says can at worst lose its own chunks.
class ReceivedNumbers {
 public:
  enum class Verdict : uint8_t { fresh, duplicate, beyond };  ///< beyond: further ahead than a sender may be

  Verdict judge(uint32_t number) const {
    if (is_before(number, expected_)) {
      return Verdict::duplicate;
    }
    if (number - expected_ >= kRemembered) {
      return Verdict::beyond;
    }
    return has(number) ? Verdict::duplicate : Verdict::fresh;
  }
  /// A fresh one.
  void take(uint32_t number) {
    if (number == expected_) {  // as mostly: it leaves no trace
      ++expected_;
    } else {
      word(number) |= bit(number);
    }
    while (has(expected_)) {
      word(expected_) &= ~bit(expected_);
      ++expected_;
    }
  }

  /// All before it have come.
  uint32_t expected() const { return expected_; }
  /// Whether some after it have come: something is missing.
  bool has_gap() const {
    for (const uint64_t bits : early_) {
      if (bits != 0) {
        return true;
      }
    }
    return false;
  }

 private:
  static constexpr uint32_t kRemembered = 2 * kSequenceWindow;
  static uint64_t bit(uint32_t number) { return uint64_t{1} << (number % 64); }
  uint64_t& word(uint32_t number) { return early_[number / 64 % early_.size()]; }
  bool has(uint32_t number) const { return (early_[number / 64 % early_.size()] & bit(number)) != 0; }

  uint32_t expected_ = 0;
  std::array<uint64_t, kRemembered / 64> early_ = {};
};

}  // namespace ringbolt::engine
