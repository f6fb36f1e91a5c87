#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ringbolt/status.h"

// all_to_all of shares that each rank knows its own part of: the ranks ask each other first.
namespace ringbolt::group {

/// Elements to each rank, and from each: of this rank, and of every rank as they have told.
struct Counts {
  Counts(std::span<const size_t> sent, std::span<const size_t> received) {
    mine.assign(sent.begin(), sent.end());
    mine.insert(mine.end(), received.begin(), received.end());
    all.resize(mine.size() * sent.size());
  }
  size_t n_ranks() const { return mine.size() / 2; }

  std::vector<uint64_t> mine;  // [2 * n_ranks]
  std::vector<uint64_t> all;   // [n_ranks][2 * n_ranks]
};

/// The shares of an all_to_all, as collective/problem.h has them, from what all have told. EPROTO: two ranks tell
/// different things of what one sends the other; as all ranks find, so none has to be told. Any numbers are safe.
Status shares_of(const Counts& counts, uint32_t element_bytes, std::vector<uint64_t>& shares);

}  // namespace ringbolt::group
