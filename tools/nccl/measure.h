#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nccl/plugin.h"

namespace ringbolt::tools::nccl_command {

/// One line of the table: messages of one size from one rank to another.
struct Figure {
  uint64_t size = 0;
  double time_us = 0;      ///< half the mean round trip of one message
  double gb_per_s = 0;     ///< of eight messages at a time
  uint64_t n_wrong = 0;    ///< messages that were not what had been sent
};

/// The two connections between this rank and another one.
struct Pair {
  Plugin& plugin;
  void* send_comm = nullptr;
  void* receive_comm = nullptr;
  uint32_t rank = 0;   ///< this one
  uint32_t other = 0;
};

/// Measures messages from the lower rank to the higher (`is_up`), or the other way round; both call it. Whoever receives
/// has the figure. Throws FoundProblem.
std::optional<Figure> measure(Pair& pair, bool is_up, uint64_t size);

}  // namespace ringbolt::tools::nccl_command
