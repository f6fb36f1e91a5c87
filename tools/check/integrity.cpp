#include "check/integrity.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/assert.h"
#include "ranks/element.h"

namespace ringbolt::tools::check {
namespace {

constexpr std::array<size_t, 3> kFull{262'144, 26'214'400, 134'217'728};
constexpr std::array<size_t, 3> kSmall{13'107, 52'428, 262'144};
constexpr uint64_t kSeed = 0x72696E67626F6C74;
constexpr uint64_t kLeastBytesPerMs = 25'000;
constexpr uint64_t kLatencyMs = 10'000;

/// Elements `first` and following of a rank's input.
void write_elements(const Step& step, uint32_t rank, uint64_t first, std::span<float> to) {
  for (size_t i = 0; i < to.size(); ++i) {
    to[i] = element(step.pattern, rank, step.round, first + i);
  }
}

}  // namespace

std::string_view text(Pattern pattern) {
  constexpr std::array<std::string_view, 3> kNames{"ones", "sequential", "random"};
  return kNames.at(static_cast<size_t>(pattern));
}

std::string_view operation_of(const Step& step) { return step.is_gather ? "all_gather" : "all_sum"; }

std::vector<Step> steps_of(const std::array<size_t, 3>& counts) {
  std::vector<Step> steps;
  for (const bool is_gather : {false, true}) {
    for (const size_t count : counts) {
      for (const Pattern pattern : {Pattern::ones, Pattern::sequential, Pattern::random}) {
        for (uint32_t round = 0; round < kRounds; ++round) {
          steps.push_back({is_gather, count, pattern, round});
        }
      }
    }
  }
  return steps;
}

std::optional<std::array<size_t, 3>> counts_of_scale(const std::string& scale) {
  if (scale == "full") {
    return kFull;
  }
  if (scale == "ci") {
    return kSmall;
  }
  double part = 0;
  const auto [end, error] = std::from_chars(scale.data(), scale.data() + scale.size(), part);
  if (error != std::errc() || end != scale.data() + scale.size() || !(part > 0 && part <= 100)) {
    return std::nullopt;
  }
  std::array<size_t, 3> counts{};
  std::transform(kFull.begin(), kFull.end(), counts.begin(), [part](size_t full) {
    return std::max<size_t>(1, static_cast<size_t>(static_cast<double>(full) * part));
  });
  return counts;
}

float element(Pattern pattern, uint32_t rank, uint32_t round, uint64_t index) {
  switch (pattern) {
    case Pattern::ones:
      return 1;
    case Pattern::sequential:
      return static_cast<float>((index + uint64_t{7919} * rank + uint64_t{104729} * round) % 65536);
    case Pattern::random:
      break;
  }
  const uint64_t base = mixed(kSeed + uint64_t{1000} * rank + round);
  return static_cast<float>(static_cast<int64_t>(mixed(base + index) % 65536) - 32768);
}

std::vector<float> input_of(const Step& step, uint32_t rank) {
  std::vector<float> input(step.count);
  write_elements(step, rank, 0, input);
  return input;
}

void write_expected(const Step& step, uint32_t n_ranks, uint64_t first, std::span<float> to) {
  if (step.is_gather) {
    while (!to.empty()) {
      const uint64_t within = first % step.count;
      const std::span<float> part = to.first(std::min<size_t>(to.size(), step.count - within));
      write_elements(step, static_cast<uint32_t>(first / step.count), within, part);
      first += part.size();
      to = to.subspan(part.size());
    }
    return;
  }
  std::fill(to.begin(), to.end(), 0.0F);
  std::vector<float> more(to.size());
  for (uint32_t rank = 0; rank < n_ranks; ++rank) {
    write_elements(step, rank, first, more);
    std::transform(to.begin(), to.end(), more.begin(), to.begin(), [](float a, float b) { return a + b; });
  }
}

std::optional<Wrong> find_wrong(const Step& step, uint32_t n_ranks, const ranks::GuardedMemory& output) {
  constexpr size_t kBlock = 16384;
  const size_t count = step.count * (step.is_gather ? n_ranks : 1);
  RINGBOLT_ASSERT(output.bytes().size() == count * sizeof(float));
  std::vector<float> want(kBlock);
  for (size_t first = 0; first < count; first += kBlock) {
    const std::span<float> block(want.data(), std::min(kBlock, count - first));
    write_expected(step, n_ranks, first, block);
    const std::span<const std::byte> got = output.bytes().subspan(first * sizeof(float), block.size_bytes());
    if (const size_t at = ranks::first_difference(got, std::as_bytes(block), sizeof(float)); at < block.size()) {
      float value = 0;
      std::copy_n(got.begin() + static_cast<ptrdiff_t>(at * sizeof(float)), sizeof(float),
                  std::as_writable_bytes(std::span(&value, 1)).begin());
      return Wrong{false, first + at, block[at], value};
    }
  }
  return output.is_guard_intact() ? std::nullopt : std::optional(Wrong{true, 0, 0, 0});
}

uint64_t deadline_ms(uint64_t input_bytes, uint32_t n_ranks) {
  return kLatencyMs + input_bytes * n_ranks / kLeastBytesPerMs;
}

}  // namespace ringbolt::tools::check
