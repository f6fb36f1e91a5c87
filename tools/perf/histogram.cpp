#include "perf/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace ringbolt::tools::perf {

/// Times below 128 ns have a bucket each; from there on the leading bit chooses the octave and the seven after it the
/// bucket.
size_t Histogram::bucket_of(uint64_t time_ns) {
  if (time_ns < kPerOctave) {
    return time_ns;
  }
  const auto octave = static_cast<unsigned>(std::bit_width(time_ns)) - 1 - kBitsPerOctave;
  const size_t bucket = (octave + 1) * kPerOctave + (time_ns >> octave) - kPerOctave;
  return std::min(bucket, kBuckets - 1);
}

uint64_t Histogram::begin_of(size_t bucket) {
  if (bucket < kPerOctave) {
    return bucket;
  }
  const size_t octave = bucket / kPerOctave - 1;
  return (bucket % kPerOctave + kPerOctave) << octave;
}

double Histogram::percentile_ns(double share) const {
  if (count_ == 0) {
    return 0;
  }
  const auto rank = static_cast<uint64_t>(std::ceil(share * static_cast<double>(count_)));
  uint64_t below = 0;
  for (size_t bucket = 0; bucket < kBuckets; ++bucket) {
    below += counts_[bucket];
    if (below >= std::max<uint64_t>(rank, 1)) {
      const double middle = (static_cast<double>(begin_of(bucket)) + static_cast<double>(begin_of(bucket + 1) - 1)) / 2;
      return std::clamp(middle, static_cast<double>(least_ns_), static_cast<double>(most_ns_));
    }
  }
  return static_cast<double>(most_ns_);
}

std::vector<Histogram::Bar> Histogram::bars() const {
  constexpr size_t kMerged = kPerOctave / 8;
  std::vector<Bar> bars;
  for (size_t bucket = 0; bucket < kBuckets; bucket += kMerged) {
    Bar bar{begin_of(bucket), begin_of(bucket + kMerged), 0};
    for (size_t one = bucket; one < bucket + kMerged; ++one) {
      bar.count += counts_[one];
    }
    if (bar.count != 0 || !bars.empty()) {
      bars.push_back(bar);
    }
  }
  while (!bars.empty() && bars.back().count == 0) {
    bars.pop_back();
  }
  return bars;
}

}  // namespace ringbolt::tools::perf
