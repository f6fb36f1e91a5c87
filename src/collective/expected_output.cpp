#include "collective/expected_output.h"

namespace ringbolt::collective {

std::vector<Expected> expected_of(const Problem& problem, uint32_t rank) {
  std::vector<Expected> expected;
  const auto from_all = [&](uint64_t offset) {
    std::vector<Origin> origins;
    for (uint32_t source = 0; source < problem.n_ranks; ++source) {
      origins.push_back({source, offset});
    }
    return origins;
  };
  const bool is_root = rank == problem.root;
  switch (problem.operation) {
    case Operation::reduce:
    case Operation::all_reduce:
      expected.push_back({{0, output_bytes(problem, rank)}, from_all(0)});
      break;
    case Operation::reduce_scatter:
      expected.push_back({{0, problem.shares[rank]}, from_all(pieces_of(problem)[rank].offset)});
      break;
    case Operation::gather:
    case Operation::all_gather:
      for (uint32_t source = 0; source < problem.n_ranks; ++source) {
        if (is_root || problem.operation == Operation::all_gather) {
          expected.push_back({pieces_of(problem)[source], {{source, 0}}});
        }
      }
      break;
    case Operation::broadcast:
      expected.push_back({{0, total_bytes(problem)}, {{problem.root, 0}}});
      break;
    case Operation::scatter:
      expected.push_back({{0, problem.shares[rank]}, {{problem.root, pieces_of(problem)[rank].offset}}});
      break;
    case Operation::all_to_all:
      for (uint32_t source = 0; source < problem.n_ranks; ++source) {
        expected.push_back({column_of(problem, rank)[source], {{source, row_of(problem, source)[rank].offset}}});
      }
      break;
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
