#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "commands.h"
#include "ranks/work.h"

namespace ringbolt::tools::bench {

/// What the command line asks for, understood.
struct Parameters {
  ranks::Collective collective = ranks::Collective::all_reduce;
  std::vector<uint64_t> sizes;  ///< bytes, as asked for
  std::vector<Type> types;
  std::vector<Reduction> reductions;  ///< one if nothing is reduced; it means nothing then
  std::vector<int64_t> roots;         ///< kAllRoots: every rank in turn
  uint32_t iterations = 20;
  uint32_t warmups = 5;
  uint32_t cycles = 1;
  bool is_checked = true;
  bool is_reproducible = true;
  std::string algorithm;
  uint64_t timeout_ms = 0;  ///< of one call; 0: the group's own
};
inline constexpr int64_t kAllRoots = -1;

/// Throws UsageError that names the option and what it may be.
Parameters parameters_of(const BenchOptions& options);

/// "8", "64K", "1M", "2G" (powers of 1024) in bytes. Throws UsageError that names `option`.
uint64_t bytes_of(const char* option, const std::string& text);

/// From `least` to `most`, times `factor`, or plus `step` if that is not 0. Throws UsageError if they are too many or
/// never reach `most`.
std::vector<uint64_t> sizes_of(uint64_t least, uint64_t most, uint64_t step, uint64_t factor);

/// Elements of one rank's part of so many bytes, rounded down: as nccl-tests divides them.
size_t count_of(ranks::Collective collective, uint64_t bytes, size_t element_bytes, uint32_t n_ranks);
/// Bytes that a call moves as algbw counts them, of parts of `count`.
uint64_t counted_bytes(ranks::Collective collective, size_t count, size_t element_bytes, uint32_t n_ranks);
/// What algbw is multiplied by to be comparable with the rate of a cable, whatever the number of ranks.
double bus_factor(ranks::Collective collective, uint32_t n_ranks);

}  // namespace ringbolt::tools::bench
