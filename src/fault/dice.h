#pragma once

#include <cstdint>

namespace ringbolt::fault {

/// Scrambles 64 bits (the finalizer of SplitMix64: Steele, Lea, Flood 2014).
constexpr uint64_t scramble(uint64_t z) {
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}

/// Random numbers of one frame: a SplitMix64 that begins at a place of its own for each key and frame. A value.
class Dice {
 public:
  Dice(uint64_t key, uint64_t frame) : state_(scramble(key + scramble(frame + kStep))) {}

  uint64_t next() { return scramble(state_ += kStep); }
  /// 0 .. bound - 1; bound > 0, and far below 2^64.
  uint64_t below(uint64_t bound) { return next() % bound; }

 private:
  static constexpr uint64_t kStep = 0x9e3779b97f4a7c15U;
  uint64_t state_;
};

}  // namespace ringbolt::fault
