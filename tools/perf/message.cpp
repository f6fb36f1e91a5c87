// Hot path: is called for every message.
#include "perf/message.h"

#include <algorithm>
#include <cstring>

#include "pattern.h"

namespace ringbolt::tools::perf {
namespace {

constexpr size_t kStampBytes = sizeof(uint64_t);
/// Of the body, when only a sample is compared.
constexpr size_t kSampleBytes = 256;

std::span<const std::byte> body_of(std::span<const std::byte> message) {
  const size_t stamps = message.size() >= 2 * kStampBytes ? 2 * kStampBytes : kStampBytes;
  return message.size() > stamps ? message.subspan(kStampBytes, message.size() - stamps) : std::span<const std::byte>{};
}

// Knuth's multiplier, near 2^32 divided by the golden ratio: seeds that differ little give patterns far apart.
uint32_t pattern_of(uint32_t seed, uint32_t slot) { return seed * 0x9e3779b1U + slot; }

}  // namespace

uint64_t stamp_of(uint32_t seed, uint64_t sequence) { return uint64_t{seed} << 32U | (sequence & 0xffff'ffffU); }

void fill_slot(std::span<std::byte> message, uint32_t seed, uint32_t slot) {
  const std::span<const std::byte> body = body_of(message);
  if (!body.empty()) {
    fill_pattern(message.subspan(kStampBytes, body.size()), pattern_of(seed, slot));
  }
}

void write_stamp(std::span<std::byte> message, uint64_t stamp) {
  if (message.size() < kStampBytes) {
    std::memcpy(message.data(), &stamp, message.size());
    return;
  }
  std::memcpy(message.data(), &stamp, kStampBytes);
  if (message.size() >= 2 * kStampBytes) {
    std::memcpy(message.data() + message.size() - kStampBytes, &stamp, kStampBytes);
  }
}

bool has_stamp(std::span<const std::byte> message, uint64_t stamp) {
  const size_t length = std::min(message.size(), kStampBytes);
  const bool is_at_end = std::memcmp(message.data() + message.size() - length, &stamp, length) == 0;
  // Between 8 and 16 bytes there is one only, in front.
  return (is_at_end || (message.size() > kStampBytes && message.size() < 2 * kStampBytes)) &&
         std::memcmp(message.data(), &stamp, length) == 0;
}

uint64_t sequence_in(std::span<const std::byte> message, uint64_t expected) {
  uint32_t low = 0;
  const size_t length = std::min(message.size(), sizeof low);
  std::memcpy(&low, message.data(), length);
  const auto unused_bits = static_cast<unsigned>(8 * (sizeof low - length));
  // The difference as a signed number of the bits that there are.
  const uint32_t difference = (low - static_cast<uint32_t>(expected)) << unused_bits;
  return expected + static_cast<uint64_t>(int64_t{static_cast<int32_t>(difference) >> unused_bits});
}

std::optional<size_t> find_damage(std::span<const std::byte> message, uint32_t seed, uint64_t sequence, uint32_t slot,
                                  Check check) {
  if (check == Check::kNone) {
    return std::nullopt;
  }
  if (!has_stamp(message, stamp_of(seed, sequence))) {
    const uint64_t stamp = stamp_of(seed, sequence);
    const size_t length = std::min(message.size(), kStampBytes);
    return std::memcmp(message.data(), &stamp, length) != 0 ? 0 : message.size() - length;
  }
  std::span<const std::byte> body = body_of(message);
  if (check == Check::kSample) {
    body = body.first(std::min(body.size(), kSampleBytes));
  }
  const std::optional<size_t> wrong = find_mismatch(body, pattern_of(seed, slot));
  return wrong ? std::optional(*wrong + kStampBytes) : std::nullopt;
}

}  // namespace ringbolt::tools::perf
