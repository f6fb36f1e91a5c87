#include "verify/step.h"

#include <algorithm>
#include <array>
#include <bit>

#include <fmt/format.h>

#include "pattern.h"

namespace ringbolt::tools::verify {

namespace {

bool within(uint64_t value, uint64_t least, uint64_t most) { return value >= least && value <= most; }

}  // namespace

const char* text_of(Mode mode) {
  constexpr std::array kTexts{"stream", "write", "read", "atomic", "churn"};
  return kTexts[static_cast<size_t>(mode)];
}

const char* text_of(Order order) { return order == Order::kStrict ? "strict" : "any"; }

std::string title_of(const Step& step) { return fmt::format("{} {}", text_of(step.transport), text_of(step.mode)); }

bool Step::makes_sense() const {
  return mode <= Mode::kChurn && transport <= pair::Transport::kUd && order <= Order::kAny &&
         within(queue_pairs, 1, 256) && within(most_bytes, 1, kMostBytes) && least_bytes <= most_bytes &&
         within(send_depth, 1, 65536) && within(receive_depth, 1, 65536) && loss_ppm <= 1'000'000 &&
         (count != 0 || duration_ms != 0);
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

uint64_t area_bytes_of(const Step& step) {
  constexpr uint64_t kLeast = 65536;
  constexpr uint64_t kUsual = uint64_t{1} << 20U;
  // The first block begins below 4096, so one of the largest always fits.
  return std::max(std::clamp(step.most_bytes * 4, kLeast, kUsual), step.most_bytes + 4096);
}

std::vector<Block> blocks_of(const Step& step, uint32_t queue_pair, uint64_t first, uint32_t most,
                             uint64_t area_bytes) {
  std::vector<Block> blocks;
  // "bloc" in ASCII: dice of their own, apart from those of sizes.
  const uint64_t dice = mixed(mixed(step.seed ^ 0x626c6f63) + (first << 8U) + queue_pair);
  uint64_t at = dice % 4096;
  while (blocks.size() < most) {
    const uint64_t sequence = first + blocks.size();
    const uint32_t length = size_of(step, queue_pair, sequence);
    if (at + length > area_bytes) {
      break;
    }
    blocks.push_back({sequence, at, length});
    // Sometimes side by side, sometimes apart.
    const uint64_t gap = mixed(dice ^ sequence);
    at += length + (gap % 4 == 0 ? 0 : gap % 300);
  }
  return blocks;
}

}  // namespace ringbolt::tools::verify
