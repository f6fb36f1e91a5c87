#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "collective/problem.h"
#include "collective/schedule.h"
#include "fabric/graph.h"

namespace ringbolt::collective {

/// The part of check() that looks at steps and transfers without running them.

struct TransferKey {
  uint32_t from = 0;
  uint32_t to = 0;
  uint32_t number = 0;
  friend auto operator<=>(const TransferKey&, const TransferKey&) = default;
};

/// "transfer 0 from rank 1 to rank 2".
std::string transfer_text(const TransferKey& transfer);
/// "rank 1, step 2".
std::string step_text(uint32_t rank, uint32_t step);
/// "input", ...
const char* buffer_text(Buffer buffer);
uint64_t buffer_bytes(const Schedule& schedule, const Problem& problem, uint32_t rank, Buffer buffer);

struct Transfer {
  TransferKey key;
  uint32_t sender = kNoStep;    ///< the step at `from`
  uint32_t receiver = kNoStep;  ///< the step at `to`
};

struct Transfers {
  std::vector<Transfer> transfers;  ///< ascending
  /// Which of them, for every end of a transfer of every step of every rank: first those of a step's sources, then of
  /// its targets.
  std::vector<uint32_t> of_ends;
};

/// The transfers, or what is wrong with a step or a transfer. Pure. Thread-safe.
/// Any schedule is safe, be it from a file. What is wrong first is told.
tl::expected<Transfers, std::string> check_structure(const Schedule& schedule, const Problem& problem,
                                                     const fabric::Graph& graph, const Limits& limits);

}  // namespace ringbolt::collective
