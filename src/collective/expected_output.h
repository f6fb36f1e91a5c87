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
  Origins origins;  ///< ascending by rank
};

/// What outputs are made of. Immutable, thread-safe.
/// `problem` must outlive it.
class ExpectedOutputs {
 public:
  explicit ExpectedOutputs(const Problem& problem);
  /// The rank's, piece by piece.
  std::vector<Expected> of(uint32_t rank) const;

 private:
  Origins from_one(uint32_t source, uint64_t offset) const;
  Origins from_all(uint64_t offset) const;

  const Problem& problem_;
  std::vector<Piece> pieces_;           // of shares, if there is one for each rank
  std::vector<uint64_t> sent_offsets_;  // all_to_all, [source * n_ranks + rank]: in the source's input
  Origins all_;
};

/// Where the rank's input begins within its output in a call in place; a negative number if the output begins within
/// the input; nothing if the two are apart. Pure. Thread-safe.
std::optional<int64_t> in_place_shift(const Problem& problem, uint32_t rank);

}  // namespace ringbolt::collective
