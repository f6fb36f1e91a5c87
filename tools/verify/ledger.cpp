#include "verify/ledger.h"

#include <fmt/format.h>

namespace ringbolt::tools::verify {

void Ledger::begin(uint64_t additions) {
  shared_begin_ = shared_sum_;
  seen_.assign(additions, false);
  links_.clear();
}

void Ledger::shared_addition(uint32_t queue_pair, uint64_t old) {
  Lane& lane = lanes_[queue_pair];
  const uint64_t place = old - shared_begin_;
  if (old < shared_begin_ || place >= seen_.size()) {
    tally_.note(Kind::kAccount, "queue pair {}: fetch-and-add returned {}, where the sum lies between {} and {}",
                queue_pair, old, shared_begin_, shared_begin_ + seen_.size());
  } else if (seen_[place]) {
    tally_.note(Kind::kAccount, "queue pair {}: fetch-and-add returned {}, which another one had returned", queue_pair,
                old);
  } else {
    seen_[place] = true;
    if (lane.has_shared && old <= lane.last_shared) {
      tally_.note(Kind::kBackwards, "queue pair {}: fetch-and-add returned {} after {}", queue_pair, old,
                  lane.last_shared);
    }
    lane.last_shared = old;
    lane.has_shared = true;
  }
  // Also of a wrong result: the addition was made once, whatever it returned. The target's cell is compared with
  // this.
  ++shared_sum_;
}

void Ledger::own_addition(uint32_t queue_pair, uint64_t addend, uint64_t old) {
  Lane& lane = lanes_[queue_pair];
  if (old != lane.own_sum) {
    tally_.note(Kind::kAccount, "queue pair {}: fetch-and-add on a cell of its own: expected {}, found {}", queue_pair,
                lane.own_sum, old);
    // Goes on from what was found, so that one mistake is told once.
    lane.own_sum = old;
  }
  lane.own_sum += addend;
}

bool Ledger::exchange(uint32_t queue_pair, uint64_t compared, uint64_t swapped, uint64_t old) {
  if (old != compared) {
    return false;
  }
  const auto [link, is_new] = links_.emplace(old, swapped);
  if (!is_new) {
    tally_.note(Kind::kAccount, "queue pair {}: compare-and-swap of {:#x} succeeded twice: for {:#x} and for {:#x}",
                queue_pair, old, link->second, swapped);
  }
  return true;
}

uint64_t Ledger::end() {
  // Results of a broken device may make a circle: the length ends that.
  uint64_t value = chain_begin_;
  size_t length = 0;
  for (auto link = links_.find(value); link != links_.end() && length < links_.size(); link = links_.find(value)) {
    value = link->second;
    ++length;
  }
  if (length != links_.size()) {
    tally_.note(Kind::kAccount,
                "of {} compare-and-swaps that succeeded only {} follow from each other: from "
                "{:#x} to {:#x}",
                links_.size(), length, chain_begin_, value);
  }
  chain_begin_ = value;
  return value;
}

}  // namespace ringbolt::tools::verify
