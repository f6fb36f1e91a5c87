#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ranks/work.h"

namespace ringbolt::tools::check {

enum class Pattern : uint8_t { ones, sequential, random };
std::string_view text(Pattern pattern);

/// One of the 54 collectives: float32, integers whose sums over up to 256 ranks are exact in any order.
struct Step {
  bool is_gather = false;  ///< all_gather; else all_reduce by sums
  size_t count = 0;        ///< elements of each rank's input
  Pattern pattern = Pattern::ones;
  uint32_t round = 0;
  friend bool operator==(const Step&, const Step&) = default;
};
inline constexpr uint32_t kRounds = 3;

/// "all_sum" or "all_gather".
std::string_view operation_of(const Step& step);

/// All of them, in order: operation, size, pattern, round; the last changes fastest.
std::vector<Step> steps_of(const std::array<size_t, 3>& counts);

/// Sizes: "full" is 1, 100 and 512 MiB; "ci" is 13107, 52428 and 262144 elements; a number is that part of full, at
/// least one element. None: it is neither.
std::optional<std::array<size_t, 3>> counts_of_scale(const std::string& scale);

/// Element `index` of rank `rank`'s input. A whole number, below 65536 in size.
float element(Pattern pattern, uint32_t rank, uint32_t round, uint64_t index);

/// Rank `rank`'s input.
std::vector<float> input_of(const Step& step, uint32_t rank);

/// Elements `first` and following of what every rank must get, as many as `to` holds. Shape of the whole: [count], or
/// [n_ranks * count] of a gather; nothing beyond it may be asked for. Pure.
void write_expected(const Step& step, uint32_t n_ranks, uint64_t first, std::span<float> to);

/// The first thing wrong with an output.
struct Wrong {
  bool is_guard = false;  ///< beside the output something was written; the rest means nothing
  uint64_t index = 0;
  float want = 0;
  float got = 0;
};
/// `output`: all of it, as large as the step says. Nothing: all is right. Takes memory for a block, not for the whole.
std::optional<Wrong> find_wrong(const Step& step, uint32_t n_ranks, const ranks::GuardedMemory& output);

/// How long one may take, in milliseconds: 10 s, and the bytes of all inputs at 25 MB/s. `input_bytes`: of one rank.
uint64_t deadline_ms(uint64_t input_bytes, uint32_t n_ranks);

}  // namespace ringbolt::tools::check
