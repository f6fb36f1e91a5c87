#pragma once

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "footprint/loop_device.h"

namespace ringbolt::bench {

constexpr std::array<size_t, 3> kCrowdSizes = {1, 128, 1000};

/// A completion queue of many connected queue pairs, each of which has carried a message and is idle since. Throws
/// std::runtime_error. Not thread-safe.
class Crowd {
 public:
  Crowd() : others_(device_.make_completion_queue()) {}

  /// So many queue pairs are on the queue from now on; not fewer than before.
  void grow(size_t queue_pairs);
  ibv_cq& cq() const { return *device_.cq(); }
  /// Messages come at once: whoever polls is as patient as it gets.
  void calm();
  /// A message arrives, raises the event that the queue is armed for, and is taken, event and all.
  void cause_event();

 private:
  struct Pair {
    QueuePair one;
    QueuePair other;
  };

  Pair& add(ibv_cq& cq_of_other);
  void wait_for_event() const;

  LoopDevice device_;
  CompletionQueue others_;  ///< of peers that do not count
  std::vector<Pair> pairs_;
  size_t size_ = 0;
};

}  // namespace ringbolt::bench
