#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "verify/finding.h"

namespace ringbolt::tools::verify {

/// Keeps the accounts of atomics on shared cells: each result must fit all others. Pure. Not thread-safe.
/// Cells begin at 0. The tally outlives it.
class Ledger {
 public:
  Ledger(uint32_t queue_pairs, Tally& tally) : tally_(tally), lanes_(queue_pairs) {}

  /// A round begins; at most `additions` fetch-and-adds of 1 will follow on the shared cell.
  /// Allocates a bit for each addition. No operation of an earlier round may still be under way.
  void begin(uint64_t additions);
  /// A fetch-and-add of 1 on the shared cell has returned `old`: what nobody else has got, and more than before here.
  void shared_addition(uint32_t queue_pair, uint64_t old);
  /// A fetch-and-add of `addend` on the queue pair's own cell has returned `old`: exactly the sum of those before it.
  void own_addition(uint32_t queue_pair, uint64_t addend, uint64_t old);
  /// A compare-and-swap on the shared cell has returned `old`. True if it has swapped.
  /// `swapped`: a value that no other exchange of the cell writes.
  bool exchange(uint32_t queue_pair, uint64_t compared, uint64_t swapped, uint64_t old);
  /// The round is over: the swaps must make one chain from the cell's value before to that after it, which is returned.
  uint64_t end();

  uint64_t shared_sum() const { return shared_sum_; }
  uint64_t own_sum(uint32_t queue_pair) const { return lanes_[queue_pair].own_sum; }

 private:
  struct Lane {
    uint64_t own_sum = 0;
    uint64_t last_shared = 0;
    bool has_shared = false;
  };

  Tally& tally_;
  std::vector<Lane> lanes_;
  uint64_t shared_sum_ = 0;  // all that came back
  uint64_t shared_begin_ = 0;
  std::vector<bool> seen_;
  uint64_t chain_begin_ = 0;
  std::unordered_map<uint64_t, uint64_t> links_;  // of the round: from value to value
};

}  // namespace ringbolt::tools::verify
