// Hot path: is called for every message.
#include "verify/stamp.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace ringbolt::tools::verify {
namespace {

constexpr uint64_t kSequenceMask = (uint64_t{1} << 40U) - 1;

/// The first 16 bytes: who it is, scrambled by the seed, and the length with a check of both.
/// In the machine's own order of bytes, which both ends must share.
std::array<uint64_t, 2> head_of(uint64_t seed, const Stamp& stamp) {
  const uint64_t who =
      uint64_t{stamp.epoch} << 48U | uint64_t{stamp.queue_pair} << 40U | (stamp.sequence & kSequenceMask);
  const uint64_t first = who ^ mixed(seed);
  const uint64_t check = mixed(mixed(~mixed(seed)) ^ who ^ mixed(stamp.length));
  return {first, (check & 0xffff'ffff'0000'0000U) | stamp.length};
}

uint64_t base_of(uint64_t seed, const Stamp& stamp) {
  const std::array<uint64_t, 2> head = head_of(seed, stamp);
  return mixed(head[0] ^ mixed(head[1]));
}

using Head = std::array<std::byte, kTellingBytes>;

Head head_bytes(uint64_t seed, const Stamp& stamp) {
  const std::array<uint64_t, 2> words = head_of(seed, stamp);
  Head bytes;
  std::memcpy(bytes.data(), words.data(), bytes.size());
  return bytes;
}

}  // namespace

void write_message(std::span<std::byte> message, uint64_t seed, const Stamp& stamp) {
  const Head head = head_bytes(seed, stamp);
  const size_t length = std::min(message.size(), head.size());
  std::copy_n(head.begin(), length, message.begin());
  fill(message.subspan(length), length, base_of(seed, stamp));
}

bool is_message(std::span<const std::byte> message, uint64_t seed, const Stamp& stamp) {
  const Head head = head_bytes(seed, stamp);
  const size_t length = std::min(message.size(), head.size());
  return message.size() == stamp.length && std::equal(head.begin(), head.begin() + length, message.begin()) &&
         is_filled(message.subspan(length), length, base_of(seed, stamp));
}

std::optional<Difference> message_difference(std::span<const std::byte> message, uint64_t seed, const Stamp& stamp) {
  const Head head = head_bytes(seed, stamp);
  const size_t length = std::min(message.size(), head.size());
  Difference all;
  for (size_t at = 0; at < length; ++at) {
    if (message[at] != head[at]) {
      if (all.bytes++ == 0) {
        all.first = at;
        all.expected = head[at];
        all.found = message[at];
      }
      all.bits += static_cast<size_t>(__builtin_popcount(std::to_integer<unsigned>(message[at] ^ head[at])));
    }
  }
  if (const auto body = difference(message.subspan(length), length, base_of(seed, stamp))) {
    if (all.bytes == 0) {
      all = {body->first + length, body->expected, body->found, 0, 0};
    }
    all.bytes += body->bytes;
    all.bits += body->bits;
  }
  return all.bytes == 0 ? std::nullopt : std::optional(all);
}

std::optional<Stamp> stamp_in(std::span<const std::byte> message, uint64_t seed) {
  if (message.size() < kTellingBytes) {
    return std::nullopt;
  }
  std::array<uint64_t, 2> words{};
  std::memcpy(words.data(), message.data(), kTellingBytes);
  const uint64_t who = words[0] ^ mixed(seed);
  const Stamp stamp{static_cast<uint16_t>(who >> 48U), static_cast<uint8_t>(who >> 40U), who & kSequenceMask,
                    static_cast<uint32_t>(words[1])};
  return head_of(seed, stamp) == words ? std::optional(stamp) : std::nullopt;
}

}  // namespace ringbolt::tools::verify
