#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace ringbolt::tools::perf {

/// Times in buckets whose width grows with the time: 128 to each doubling, so a percentile is off by less than 0.8 %.
/// Smallest, largest and mean are exact. Memory does not grow with the count. Not thread-safe.
class Histogram {
 public:
  static constexpr unsigned kBitsPerOctave = 7;

  /// Hot path.
  /// The sum holds 2^64 ns, 584 years of waiting in all.
  void add(uint64_t time_ns) {
    ++counts_[bucket_of(time_ns)];
    ++count_;
    sum_ns_ += time_ns;
    least_ns_ = time_ns < least_ns_ ? time_ns : least_ns_;
    most_ns_ = time_ns > most_ns_ ? time_ns : most_ns_;
  }

  uint64_t count() const { return count_; }
  /// 0 if nothing was added.
  uint64_t least_ns() const { return count_ == 0 ? 0 : least_ns_; }
  uint64_t most_ns() const { return most_ns_; }
  double mean_ns() const { return count_ == 0 ? 0 : static_cast<double>(sum_ns_) / static_cast<double>(count_); }
  /// The time that `share` (0 to 1) of all do not exceed: the middle of the bucket that the nearest rank lies in,
  /// never outside of least and most. 0 if nothing was added.
  double percentile_ns(double share) const;

  /// One bar of a picture: times in [from_ns, to_ns).
  /// Except the last that is possible, which also has all that took longer.
  struct Bar {
    uint64_t from_ns = 0;
    uint64_t to_ns = 0;
    uint64_t count = 0;
    friend bool operator==(const Bar&, const Bar&) = default;
  };
  /// Eight bars to each doubling, from the first that is not empty to the last, empty ones between included.
  std::vector<Bar> bars() const;

 private:
  static constexpr size_t kPerOctave = size_t{1} << kBitsPerOctave;
  /// Up to 2^40 ns, 18 minutes; what takes longer counts as that long.
  static constexpr unsigned kMostBits = 40;
  static constexpr size_t kBuckets = (kMostBits - kBitsPerOctave + 1) * kPerOctave;

  static size_t bucket_of(uint64_t time_ns);
  static uint64_t begin_of(size_t bucket);

  std::array<uint64_t, kBuckets> counts_{};
  uint64_t count_ = 0;
  uint64_t sum_ns_ = 0;
  uint64_t least_ns_ = ~uint64_t{0};
  uint64_t most_ns_ = 0;
};

}  // namespace ringbolt::tools::perf
