#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collective/problem.h"
#include "collective/schedule.h"

namespace ringbolt::collective {

/// Which ranks' input is in what a step works on: the same in all its chunks.
/// Not thread-safe. `problem` must outlive it.
class Contributions {
 public:
  using Set = std::shared_ptr<const std::vector<uint64_t>>;  ///< a bit for each rank

  explicit Contributions(const Problem& problem);

  Set of_rank(uint32_t rank) const { return of_ranks_[rank]; }
  /// Nothing if a rank is in both.
  Set sum_of(const Set& a, const Set& b) const;
  /// So many bytes of a rank's output have these contributions.
  void note_output(uint32_t rank, uint64_t bytes, const Set& set);
  /// What is wrong with the outputs, or nothing.
  std::string objection() const;

 private:
  uint64_t expected_bytes(uint32_t rank, uint32_t source) const;

  const Problem& problem_;
  std::vector<Set> of_ranks_;
  /// How many bytes of each rank's output come from all ranks, or from one: [rank], or [rank * n_ranks + source].
  std::vector<uint64_t> bytes_;
};

}  // namespace ringbolt::collective
