#pragma once

#include <cstdint>

namespace ringbolt::fault {

/// Scrambles 64 bits (the finalizer of SplitMix64: Steele, Lea, Flood 2014).
constexpr uint64_t scramble(uint64_t z) {
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}

/// Random numbers of one frame: a SplitMix64 that begins at a place of its own for each key and frame. A value. The
/// numbers are part of what a seed means: a change here changes every run that a user has noted down.
class Dice {
 public:
  Dice(uint64_t key, uint64_t frame) : state_(scramble(key + scramble(frame + kStep))) {}

  // SplitMix64's step is the golden ratio in 64 bits: an odd number, so that all 2^64 states come.
  uint64_t next() { return scramble(state_ += kStep); }
  /// 0 .. bound - 1; bound > 0, and far below 2^64. The remainder prefers small numbers by bound / 2^64 at most,
  /// which no test of a cable can see.
  uint64_t below(uint64_t bound) { return next() % bound; }

 private:
  static constexpr uint64_t kStep = 0x9e3779b97f4a7c15U;
  uint64_t state_;
};

}  // namespace ringbolt::fault
