#pragma once

#include <cstdint>

#include "turn_page.h"

namespace ringbolt::bench {

/// Lets the ranks of a peer begin every call at one time, and tells rank 0 when the last of them had finished: all by
/// the processor's time stamp, which the cores of one machine share. Not part of what is timed. Not thread-safe; all
/// ranks make theirs between TurnPage::arrive() and their first wait().
class StartLine {
 public:
  /// `ranks` is at most TurnPage::kMostRanks.
  StartLine(TurnPage& page, unsigned rank, unsigned ranks);

  /// Waits for all ranks, then for the time at which they begin, and returns it. Where ranks share a core they yield
  /// while they wait, and the time is when the last of them came.
  uint64_t wait();
  /// This rank has finished the call that began with the last wait().
  void finish(uint64_t ticks);

  /// When the last rank finished that call. All ranks have waited once more since.
  uint64_t last_finish() const { return latest(n_calls_ - 1); }
  /// The same for the call before it. This rank has finished the last one.
  uint64_t last_finish_before() const { return latest(n_calls_ - 2); }

 private:
  uint64_t latest(uint64_t call) const;

  TurnPage& page_;
  unsigned rank_;
  unsigned ranks_;
  uint64_t start_;
  uint64_t n_calls_ = 0;  // finished ones
};

}  // namespace ringbolt::bench
