#include "verify/step.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <vector>

#include <fmt/format.h>

#include "verify/bytes.h"

namespace ringbolt::tools::verify {
namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 30U;
constexpr size_t kNumbers = 17;

}  // namespace

const char* text_of(Mode mode) {
  constexpr std::array kTexts{"stream", "write", "read", "atomic", "churn"};
  return kTexts[static_cast<size_t>(mode)];
}

const char* text_of(Order order) { return order == Order::kStrict ? "strict" : "any"; }

std::string title_of(const Step& step) { return fmt::format("{} {}", text_of(step.transport), text_of(step.mode)); }

std::string emit_step(const Step& one) {
  const std::array<uint64_t, kNumbers> numbers{static_cast<uint64_t>(one.mode),
                                               static_cast<uint64_t>(one.transport),
                                               static_cast<uint64_t>(one.order),
                                               one.is_bidirectional,
                                               one.is_reversed,
                                               one.counts_frames,
                                               one.has_read_back,
                                               one.queue_pairs,
                                               one.epoch,
                                               one.seed,
                                               one.least_bytes,
                                               one.most_bytes,
                                               one.count,
                                               one.duration_ms,
                                               one.send_depth,
                                               one.receive_depth,
                                               one.loss_ppm};
  return fmt::format("{}", fmt::join(numbers, " "));
}

std::optional<Step> parse_step(std::string_view text) {
  std::array<uint64_t, kNumbers> numbers{};
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  for (uint64_t& number : numbers) {
    at += at != end && *at == ' ' ? 1 : 0;
    const auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc{}) {
      return std::nullopt;
    }
    at = next;
  }
  const auto within = [&](size_t index, uint64_t least, uint64_t most) {
    return numbers[index] >= least && numbers[index] <= most;
  };
  const bool makes_sense = at == end && within(0, 0, 4) && within(1, 0, 2) && within(2, 0, 1) && within(7, 1, 256) &&
                           within(8, 0, UINT32_MAX) && within(11, 1, kMostBytes) && within(10, 0, numbers[11]) &&
                           within(14, 1, 65536) && within(15, 1, 65536) && within(16, 0, 1'000'000) &&
                           (numbers[12] != 0 || numbers[13] != 0);
  if (!makes_sense) {
    return std::nullopt;
  }
  Step one;
  one.mode = static_cast<Mode>(numbers[0]);
  one.transport = static_cast<pair::Transport>(numbers[1]);
  one.order = static_cast<Order>(numbers[2]);
  one.is_bidirectional = numbers[3] != 0;
  one.is_reversed = numbers[4] != 0;
  one.counts_frames = numbers[5] != 0;
  one.has_read_back = numbers[6] != 0;
  one.queue_pairs = static_cast<uint32_t>(numbers[7]);
  one.epoch = static_cast<uint32_t>(numbers[8]);
  one.seed = numbers[9];
  one.least_bytes = numbers[10];
  one.most_bytes = numbers[11];
  one.count = numbers[12];
  one.duration_ms = numbers[13];
  one.send_depth = static_cast<uint32_t>(numbers[14]);
  one.receive_depth = static_cast<uint32_t>(numbers[15]);
  one.loss_ppm = static_cast<uint32_t>(numbers[16]);
  return one;
}

SizeRange sizes_of(const Step& step, uint32_t queue_pair) {
  if (!step.counts_frames) {
    return {step.least_bytes, step.most_bytes};
  }
  const auto frames_of = [](uint64_t bytes) { return std::max<uint64_t>((bytes + kFrameBytes - 1) / kFrameBytes, 1); };
  const uint64_t first = frames_of(step.least_bytes);
  const uint64_t last = frames_of(step.most_bytes);
  // Spread over the queue pairs; where there is one only, over the steps.
  const uint64_t frames = step.queue_pairs > 1 ? first + (last - first) * queue_pair / (step.queue_pairs - 1)
                                               : first + mixed(step.seed ^ step.epoch) % (last - first + 1);
  return {std::max(step.least_bytes, (frames - 1) * kFrameBytes + (frames > 1 ? 1 : 0)),
          std::min(step.most_bytes, frames * kFrameBytes)};
}

uint32_t size_of(const Step& step, uint32_t queue_pair, uint64_t sequence) {
  const SizeRange range = sizes_of(step, queue_pair);
  const uint64_t span = range.most - range.least;
  const uint64_t dice = mixed(mixed(step.seed + queue_pair) ^ sequence);
  constexpr uint64_t kOften = 16;
  if (span == 0 || dice % kOften == 0) {
    return static_cast<uint32_t>(range.most);
  }
  if (dice % kOften == 1) {
    return static_cast<uint32_t>(range.least);
  }
  const auto bits = static_cast<unsigned>((dice >> 8U) % static_cast<uint64_t>(std::bit_width(span) + 1));
  const uint64_t above = (dice >> 16U) & ((uint64_t{1} << bits) - 1);
  return static_cast<uint32_t>(range.least + std::min(above, span));
}

}  // namespace ringbolt::tools::verify
