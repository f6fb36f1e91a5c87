#include "base/adaptive_copy.h"

#include <algorithm>

#include "base/clock.h"
#include "base/copy.h"

namespace ringbolt::base {
namespace {

/// Past the caches costs the reader something, too, where the cores are near: it must be so much better, in percent.
constexpr uint64_t kMargin = 125;

}  // namespace

void CopyChoice::note(uint64_t ps_per_kib) {
  if (!is_trying_) {
    if (--n_left_ == 0) {
      is_trying_ = true;
      n_tried_ = 0;
    }
    return;
  }
  times_[n_tried_ % 2][n_tried_ / 2] = ps_per_kib;
  if (++n_tried_ < 2 * kTries) {
    return;
  }
  for (auto& times : times_) {
    std::nth_element(times.begin(), times.begin() + kTries / 2, times.end());  // a median: some are interrupted
  }
  const uint64_t through = times_[0][kTries / 2];
  const uint64_t past = times_[1][kTries / 2];
  // Cannot overflow: a KiB that took an hour would still be below 2^62 with the factor.
  chosen_ = past * kMargin < through * 100 ? CopyWay::past_caches : CopyWay::through_caches;
  is_trying_ = false;
  n_left_ = kBlocksPerChoice;
}

void AdaptiveCopy::copy(void* target, const void* source, size_t length_bytes) {
  if (length_bytes < kLeastBytes) {
    base::copy(target, source, length_bytes);
    return;
  }
  const uint64_t begin = now_ns();
  if (choice_.next() == CopyWay::past_caches) {
    copy_past_caches(target, source, length_bytes);
  } else {
    base::copy(target, source, length_bytes);
  }
  choice_.note((now_ns() - begin) * 1'000'000 / length_bytes);
}

}  // namespace ringbolt::base
