#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ringbolt/group.h"

namespace ringbolt::test {

/// What has come from one peer while every rank sent to every other one as fast as it could.
struct Arrivals {
  uint64_t messages = 0;
  uint64_t wrong = 0;           ///< messages with an element that is not what was sent
  uint64_t longest_gap_ms = 0;  ///< between two of them, or the beginning and the first
  std::string problem = {};     ///< why a call failed; empty: none did
};

/// Every ordered pair of ranks has a stream of messages of its own, which nothing but the cables ties to the others'.
/// For `seconds`, then each sender says that it was the last. A collective call. `count`: elements of 4 bytes a
/// message, at least one. Returns the arrivals by rank; this rank's own are empty.
std::vector<Arrivals> run_pairs(Group& group, size_t count, double seconds);

}  // namespace ringbolt::test
