#include "group/arguments.h"

#include <fmt/core.h>

#include <algorithm>

namespace ringbolt::group {
namespace {

using collective::Operation;

/// What a rank's two buffers must have room for.
struct Extent {
  uint64_t input_bytes = 0;
  uint64_t output_bytes = 0;
};

static_assert(kMostBytes == uint64_t{1} << 47);
/// x86-64 and ARM64 programs have 2^47 or 2^48 bytes of addresses with tables of four levels.
constexpr const char* kTooLarge = "more than 2^47 bytes: look at the count";

/// Of all shares; more than kMostBytes if it is more than can be told.
/// In bytes. Saturates instead of wrapping: counts come from the program.
uint64_t total_of(const PlanKey& what) {
  if (what.n_equal_shares > 0) {
    return what.equal_share_bytes > kMostBytes / what.n_equal_shares ? kMostBytes + 1
                                                                     : what.n_equal_shares * what.equal_share_bytes;
  }
  uint64_t total = 0;
  // Cut before it is added, so that a sum of two can't wrap.
  for (const uint64_t share : what.problem.shares) {
    total += std::min(share, kMostBytes + 1);
    if (total > kMostBytes) {
      return kMostBytes + 1;
    }
  }
  return total;
}

/// collective/problem.h has the layouts.
Extent extent_of(const PlanKey& what, uint32_t rank) {
  const collective::Problem problem = what.whole_problem();
  const uint64_t total = total_of(what);
  const auto share = [&](size_t i) { return problem.shares[i]; };
  const uint64_t at_root = problem.root == rank ? total : 0;
  switch (problem.operation) {
    case Operation::all_reduce:
    case Operation::broadcast:
      return {total, total};
    case Operation::reduce_scatter:
      return {total, share(rank)};
    case Operation::all_gather:
      return {share(rank), total};
    case Operation::reduce:
      return {total, at_root};
    case Operation::gather:
      return {share(rank), at_root};
    case Operation::scatter:
      return {at_root, share(rank)};
    case Operation::all_to_all: {
      Extent extent;
      for (size_t other = 0; other < problem.n_ranks; ++other) {
        extent.input_bytes += share(rank * problem.n_ranks + other);
        extent.output_bytes += share(other * problem.n_ranks + rank);
      }
      return extent;
    }
    case Operation::barrier:
      break;
  }
  return {};
}

std::string objection_to(collective::Type type) {
  return static_cast<uint32_t>(type) < collective::kTypes
             ? std::string()
             : fmt::format("type {}: there are {}", static_cast<uint32_t>(type), collective::kTypes);
}

std::string objection_to(collective::Type type, collective::Reduction reduction) {
  if (static_cast<uint32_t>(reduction) >= collective::kReductions) {
    return fmt::format("reduction {}: there are {}", static_cast<uint32_t>(reduction), collective::kReductions);
  }
  if (!collective::can_reduce(type, reduction)) {
    return fmt::format("{} of {}: there is no such thing", collective::text(reduction), collective::text(type));
  }
  return {};
}

}  // namespace

uint64_t bytes_of(uint64_t count, uint32_t element_bytes) {
  return count > kMostBytes ? kMostBytes + 1 : count * element_bytes;
}

std::string objection(const Asked& asked, uint32_t rank) {
  const collective::Problem& problem = asked.what.problem;
  if (problem.root >= problem.n_ranks) {
    return fmt::format("root {} of a group of {} ranks", problem.root, problem.n_ranks);
  }
  if (std::string words = objection_to(asked.type); !words.empty()) {
    return words;
  }
  if (std::string words = objection_to(asked.type, asked.reduction); !words.empty()) {
    return words;
  }
  if (total_of(asked.what) > kMostBytes) {
    return kTooLarge;
  }
  if (asked.input == nullptr || asked.output == nullptr) {
    const Extent extent = extent_of(asked.what, rank);
    if (asked.input == nullptr && extent.input_bytes > 0) {
      return fmt::format("the input is null, and has {} bytes", extent.input_bytes);
    }
    if (asked.output == nullptr && extent.output_bytes > 0) {
      return fmt::format("the output is null, and has {} bytes", extent.output_bytes);
    }
  }
  return {};
}

std::string objection(const void* data, uint64_t bytes, collective::Type type) {
  if (std::string words = objection_to(type); !words.empty()) {
    return words;
  }
  if (bytes > kMostBytes) {
    return kTooLarge;
  }
  if (data == nullptr && bytes > 0) {
    return fmt::format("the message is null, and has {} bytes", bytes);
  }
  return {};
}

}  // namespace ringbolt::group
