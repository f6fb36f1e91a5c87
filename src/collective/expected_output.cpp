#include "collective/expected_output.h"

namespace ringbolt::collective {

ExpectedOutputs::ExpectedOutputs(const Problem& problem) : problem_(problem) {
  const size_t n = problem.n_ranks;
  if (problem.operation == Operation::all_to_all) {
    for (uint32_t source = 0; source < n; ++source) {
      for (const Piece& piece : row_of(problem, source)) {
        sent_offsets_.push_back(piece.offset);
      }
    }
  } else if (problem.shares.size() == n) {
    pieces_ = pieces_of(problem);
  }
  for (uint32_t rank = 0; rank < n; ++rank) {
    all_.append(from_one(rank, 0));
  }
}

Origins ExpectedOutputs::from_one(uint32_t source, uint64_t offset) const {
  return {{source, offset}, problem_.n_ranks <= Origins::kMostListed};
}

Origins ExpectedOutputs::from_all(uint64_t offset) const {
  Origins origins = all_;
  origins.shift(offset);
  return origins;
}

std::vector<Expected> ExpectedOutputs::of(uint32_t rank) const {
  std::vector<Expected> expected;
  const bool is_root = rank == problem_.root;
  switch (problem_.operation) {
    case Operation::reduce:
    case Operation::all_reduce:
      expected.push_back({{0, output_bytes(problem_, rank)}, from_all(0)});
      break;
    case Operation::reduce_scatter:
      expected.push_back({{0, problem_.shares[rank]}, from_all(pieces_[rank].offset)});
      break;
    case Operation::gather:
    case Operation::all_gather:
      for (uint32_t source = 0; source < problem_.n_ranks; ++source) {
        if (is_root || problem_.operation == Operation::all_gather) {
          expected.push_back({pieces_[source], from_one(source, 0)});
        }
      }
      break;
    case Operation::broadcast:
      expected.push_back({{0, total_bytes(problem_)}, from_one(problem_.root, 0)});
      break;
    case Operation::scatter:
      expected.push_back({{0, problem_.shares[rank]}, from_one(problem_.root, pieces_[rank].offset)});
      break;
    case Operation::all_to_all: {
      const std::vector<Piece> column = column_of(problem_, rank);
      for (uint32_t source = 0; source < problem_.n_ranks; ++source) {
        expected.push_back({column[source], from_one(source, sent_offsets_[size_t{source} * problem_.n_ranks + rank])});
      }
      break;
    }
    case Operation::barrier:
      break;
  }
  return expected;
}

std::optional<int64_t> in_place_shift(const Problem& problem, uint32_t rank) {
  const bool is_root = rank == problem.root;
  const auto own = [&] { return static_cast<int64_t>(pieces_of(problem)[rank].offset); };
  switch (problem.operation) {
    case Operation::all_reduce:
      return 0;
    case Operation::reduce:
    case Operation::broadcast:
      return is_root ? std::optional<int64_t>(0) : std::nullopt;
    case Operation::all_gather:
      return own();
    case Operation::reduce_scatter:
      return -own();
    case Operation::gather:
      return is_root ? std::optional<int64_t>(own()) : std::nullopt;
    case Operation::scatter:
      return is_root ? std::optional<int64_t>(-own()) : std::nullopt;
    case Operation::all_to_all:
    case Operation::barrier:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace ringbolt::collective
