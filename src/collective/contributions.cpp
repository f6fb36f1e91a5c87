#include "collective/contributions.h"

#include <bit>

#include <fmt/format.h>

#include "collective/layout.h"

namespace ringbolt::collective {
namespace {

constexpr uint32_t kBits = 64;

}  // namespace

Contributions::Contributions(const Problem& problem) : problem_(problem) {
  const uint64_t n = problem.n_ranks;
  for (uint32_t rank = 0; rank < n; ++rank) {
    std::vector<uint64_t> set((n + kBits - 1) / kBits);
    set[rank / kBits] |= uint64_t{1} << rank % kBits;
    of_ranks_.push_back(std::make_shared<const std::vector<uint64_t>>(std::move(set)));
  }
  bytes_.resize(reduces(problem.operation) ? n : n * n);
}

Contributions::Set Contributions::sum_of(const Set& a, const Set& b) const {
  auto sum = std::make_shared<std::vector<uint64_t>>(*a);
  for (size_t word = 0; word < sum->size(); ++word) {
    if (((*a)[word] & (*b)[word]) != 0) {
      return nullptr;
    }
    (*sum)[word] |= (*b)[word];
  }
  return sum;
}

void Contributions::note_output(uint32_t rank, uint64_t bytes, const Set& set) {
  uint32_t count = 0;
  uint32_t first = 0;
  for (size_t word = set->size(); word-- > 0;) {
    count += static_cast<uint32_t>(std::popcount((*set)[word]));
    if ((*set)[word] != 0) {
      first = static_cast<uint32_t>(word * kBits) + static_cast<uint32_t>(std::countr_zero((*set)[word]));
    }
  }
  if (!reduces(problem_.operation)) {
    bytes_[static_cast<size_t>(rank) * problem_.n_ranks + first] += bytes;
  } else if (count == problem_.n_ranks) {  // what has less is not yet the result
    bytes_[rank] += bytes;
  }
}

uint64_t Contributions::expected_bytes(uint32_t rank, uint32_t source) const {
  const bool is_root = rank == problem_.root;
  switch (problem_.operation) {
    case Operation::all_gather:
      return problem_.shares[source];
    case Operation::gather:
      return is_root ? problem_.shares[source] : 0;
    case Operation::broadcast:
      return source == problem_.root ? total_bytes(problem_) : 0;
    case Operation::scatter:
      return source == problem_.root ? problem_.shares[rank] : 0;
    case Operation::all_to_all:
      return problem_.shares[static_cast<size_t>(source) * problem_.n_ranks + rank];
    default:
      return output_bytes(problem_, rank);
  }
}

std::string Contributions::objection() const {
  const uint32_t n_sources = reduces(problem_.operation) ? 1 : problem_.n_ranks;
  for (uint32_t rank = 0; rank < problem_.n_ranks; ++rank) {
    for (uint32_t source = 0; source < n_sources; ++source) {
      const uint64_t expected = problem_.operation == Operation::barrier ? 0 : expected_bytes(rank, source);
      const uint64_t found = bytes_[static_cast<size_t>(rank) * n_sources + source];
      if (found != expected) {
        return n_sources == 1
                   ? fmt::format("rank {}: {} bytes have come from all, not {}", rank, found, expected)
                   : fmt::format("rank {}: {} bytes have come from rank {}, not {}", rank, found, source, expected);
      }
    }
  }
  return "";
}

}  // namespace ringbolt::collective
