#pragma once

#include <cstdint>

namespace ringbolt::sim {

/// SplitMix64 (Steele, Lea, Flood 2014): the same numbers from the same seed on every platform, which the standard's
/// distributions don't promise.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }
  /// 0 .. bound - 1; bound > 0.
  uint64_t below(uint64_t bound) { return next() % bound; }
  /// from .. to.
  uint64_t between(uint64_t from, uint64_t to) { return from + below(to - from + 1); }
  bool one_in(uint64_t count) { return below(count) == 0; }
  /// True in `parts` of a million cases.
  bool happens(uint32_t parts_per_million) { return below(1'000'000) < parts_per_million; }

 private:
  uint64_t state_;
};

}  // namespace ringbolt::sim
