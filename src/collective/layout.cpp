#include "collective/layout.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/assert.h"

namespace ringbolt::collective {
namespace {

std::vector<Piece> one_after_the_other(const std::vector<uint64_t>& bytes) {
  std::vector<Piece> pieces;
  uint64_t offset = 0;
  for (const uint64_t one : bytes) {
    pieces.push_back({offset, one});
    offset += one;
  }
  return pieces;
}

}  // namespace

const char* operation_text(Operation operation) {
  switch (operation) {
    case Operation::all_reduce:
      return "all_reduce";
    case Operation::reduce_scatter:
      return "reduce_scatter";
    case Operation::all_gather:
      return "all_gather";
    case Operation::broadcast:
      return "broadcast";
    case Operation::reduce:
      return "reduce";
    case Operation::gather:
      return "gather";
    case Operation::scatter:
      return "scatter";
    case Operation::all_to_all:
      return "all_to_all";
    case Operation::barrier:
      return "barrier";
  }
  return "?";
}

bool reduces(Operation operation) {
  return operation == Operation::all_reduce || operation == Operation::reduce_scatter || operation == Operation::reduce;
}

bool has_root(Operation operation) {
  return operation == Operation::broadcast || operation == Operation::reduce || operation == Operation::gather ||
         operation == Operation::scatter;
}

uint64_t total_bytes(const Problem& problem) {
  return std::accumulate(problem.shares.begin(), problem.shares.end(), uint64_t{0});
}

uint64_t input_bytes(const Problem& problem, uint32_t rank) {
  const bool is_root = rank == problem.root;
  switch (problem.operation) {
    case Operation::all_reduce:
    case Operation::reduce_scatter:
    case Operation::reduce:
      return total_bytes(problem);
    case Operation::all_gather:
    case Operation::gather:
      return problem.shares[rank];
    case Operation::broadcast:
    case Operation::scatter:
      return is_root ? total_bytes(problem) : 0;
    case Operation::all_to_all: {
      const std::vector<Piece> row = row_of(problem, rank);
      return row.back().offset + row.back().bytes;
    }
    case Operation::barrier:
      return 0;
  }
  return 0;
}

uint64_t output_bytes(const Problem& problem, uint32_t rank) {
  const bool is_root = rank == problem.root;
  switch (problem.operation) {
    case Operation::all_reduce:
    case Operation::all_gather:
    case Operation::broadcast:
      return total_bytes(problem);
    case Operation::reduce_scatter:
    case Operation::scatter:
      return problem.shares[rank];
    case Operation::reduce:
    case Operation::gather:
      return is_root ? total_bytes(problem) : 0;
    case Operation::all_to_all: {
      const std::vector<Piece> column = column_of(problem, rank);
      return column.back().offset + column.back().bytes;
    }
    case Operation::barrier:
      return 0;
  }
  return 0;
}

std::vector<Piece> pieces_of(const Problem& problem) {
  RINGBOLT_ASSERT(problem.shares.size() == problem.n_ranks);
  return one_after_the_other(problem.shares);
}

std::vector<Piece> row_of(const Problem& problem, uint32_t rank) {
  const size_t n = problem.n_ranks;
  RINGBOLT_ASSERT(problem.shares.size() == n * n && rank < n);
  const auto first = problem.shares.begin() + static_cast<std::ptrdiff_t>(rank * n);
  return one_after_the_other({first, first + static_cast<std::ptrdiff_t>(n)});
}

std::vector<Piece> column_of(const Problem& problem, uint32_t rank) {
  const size_t n = problem.n_ranks;
  RINGBOLT_ASSERT(problem.shares.size() == n * n && rank < n);
  std::vector<uint64_t> bytes;
  for (size_t source = 0; source < n; ++source) {
    bytes.push_back(problem.shares[source * n + rank]);
  }
  return one_after_the_other(bytes);
}

std::vector<Piece> cut(const Piece& whole, uint32_t element_bytes, const std::vector<double>& weights) {
  RINGBOLT_ASSERT(element_bytes > 0 && whole.bytes % element_bytes == 0);
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  RINGBOLT_ASSERT(sum > 0);
  const uint64_t n_elements = whole.bytes / element_bytes;
  std::vector<Piece> pieces;
  double weight = 0;
  uint64_t done = 0;
  for (size_t index = 0; index < weights.size(); ++index) {
    weight += weights[index];
    const auto border = static_cast<uint64_t>(std::llround(weight / sum * static_cast<double>(n_elements)));
    const uint64_t end = index + 1 == weights.size() ? n_elements : std::clamp(border, done, n_elements);
    pieces.push_back({whole.offset + done * element_bytes, (end - done) * element_bytes});
    done = end;
  }
  return pieces;
}

std::vector<Piece> cut_evenly(const Piece& whole, uint32_t element_bytes, uint64_t n_pieces) {
  RINGBOLT_ASSERT(element_bytes > 0 && n_pieces > 0 && whole.bytes % element_bytes == 0);
  const uint64_t n_elements = whole.bytes / element_bytes;
  std::vector<Piece> pieces;
  uint64_t offset = whole.offset;
  for (uint64_t index = 0; index < n_pieces; ++index) {
    const uint64_t bytes = (n_elements / n_pieces + (index < n_elements % n_pieces ? 1 : 0)) * element_bytes;
    pieces.push_back({offset, bytes});
    offset += bytes;
  }
  return pieces;
}

}  // namespace ringbolt::collective
