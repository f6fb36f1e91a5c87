#pragma once

// Hot path: no allocation.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace ringbolt::transport {

/// Packets that may be on their way at once: what one selective acknowledgement describes.
inline constexpr uint32_t kWindowPackets = 256;

/// A bit for each packet of a window that slides over ever-growing sequence numbers. Ranges are at most a window long.
/// Not thread-safe.
/// Whoever moves the window on clears the bits that fall out behind: the next round uses the same words.
class WindowBits {
 public:
  bool test(uint64_t sequence) const { return (words_[word(sequence)] >> (sequence % 64) & 1) != 0; }
  void set(uint64_t sequence) { words_[word(sequence)] |= uint64_t{1} << (sequence % 64); }
  void clear(uint64_t sequence) { words_[word(sequence)] &= ~(uint64_t{1} << (sequence % 64)); }
  void clear_range(uint64_t from, uint64_t to) {
    for_words(from, to, [this](size_t index, uint64_t mask, uint64_t) {
      words_[index] &= ~mask;
      return true;
    });
  }
  void set_range(uint64_t from, uint64_t to) {
    for_words(from, to, [this](size_t index, uint64_t mask, uint64_t) {
      words_[index] |= mask;
      return true;
    });
  }
  uint32_t count(uint64_t from, uint64_t to) const {
    uint32_t found = 0;
    for_words(from, to, [&](size_t index, uint64_t mask, uint64_t) {
      found += static_cast<uint32_t>(std::popcount(words_[index] & mask));
      return true;
    });
    return found;
  }
  /// The first in from..to that is set, or `to`.
  uint64_t find_set(uint64_t from, uint64_t to) const {
    return find(from, to, [this](size_t index) { return words_[index]; });
  }
  /// The first in from..to that is clear, or `to`.
  uint64_t find_clear(uint64_t from, uint64_t to) const {
    return find(from, to, [this](size_t index) { return ~words_[index]; });
  }
  bool any() const { return (words_[0] | words_[1] | words_[2] | words_[3]) != 0; }
  void reset() { words_ = {}; }

 private:
  static_assert(kWindowPackets == 256);
  static size_t word(uint64_t sequence) { return sequence % kWindowPackets / 64; }

  /// Calls visit(index, mask, sequence of the word's bit 0) for each word that from..to touches, until it says false.
  template <class Visit>
  static void for_words(uint64_t from, uint64_t to, Visit&& visit) {
    while (from < to) {
      const uint64_t base = from - from % 64;
      const uint64_t end = to - base < 64 ? to - base : 64;
      const uint64_t below_end = end == 64 ? ~uint64_t{0} : (uint64_t{1} << end) - 1;
      if (!visit(word(from), below_end & (~uint64_t{0} << (from % 64)), base)) {
        return;
      }
      from = base + 64;
    }
  }
  template <class Bits>
  static uint64_t find(uint64_t from, uint64_t to, Bits&& bits) {
    uint64_t found = to;
    for_words(from, to, [&](size_t index, uint64_t mask, uint64_t base) {
      const uint64_t hits = bits(index) & mask;
      if (hits != 0) {
        found = base + static_cast<uint64_t>(std::countr_zero(hits));
      }
      return hits == 0;
    });
    return found;
  }

  std::array<uint64_t, kWindowPackets / 64> words_{};
};

}  // namespace ringbolt::transport
