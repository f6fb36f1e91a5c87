#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "collective/layout.h"
#include "collective/symbols.h"

namespace ringbolt::collective {

/// Where output byte ranges come from.
struct Expected {
  Piece output;
  std::vector<Origin> origins;  ///< ascending by rank
};

/// What the rank's output is made of, piece by piece. Pure. Thread-safe.
std::vector<Expected> expected_of(const Problem& problem, uint32_t rank);

/// Where the rank's input begins within its output in a call in place; a negative number if the output begins within
/// the input; nothing if the two are apart. Pure. Thread-safe.
std::optional<int64_t> in_place_shift(const Problem& problem, uint32_t rank);

}  // namespace ringbolt::collective
