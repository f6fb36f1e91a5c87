#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

namespace ringbolt::test {

/// One message of one stream. Its bytes depend on all of this and on their place, so that what is shifted, doubled, or
/// another's is found.
struct MessageId {
  int sender = 0;
  int channel = 0;
  uint64_t number = 0;
};

constexpr uint64_t mixed(uint64_t x) {  // the finalizer of splitmix64
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31U);
}

constexpr uint64_t seed_of(const MessageId& id) {
  return mixed(mixed(static_cast<uint64_t>(id.sender) * 0x10001U + static_cast<uint64_t>(id.channel) + 1) + id.number);
}

/// The 8 bytes at offset 8 * i. Multiplied only: verifying must not be slower than what it verifies.
constexpr uint64_t word_of(uint64_t seed, uint64_t i) { return (seed + i) * 0x9e3779b97f4a7c15U; }

inline void fill(void* memory, size_t bytes, const MessageId& id) {
  const uint64_t seed = seed_of(id);
  auto* out = static_cast<unsigned char*>(memory);
  for (size_t i = 0; i < bytes / 8; ++i) {
    const uint64_t word = word_of(seed, i);
    std::memcpy(out + 8 * i, &word, 8);
  }
  const uint64_t last = word_of(seed, bytes / 8);
  std::memcpy(out + bytes / 8 * 8, &last, bytes % 8);
}

/// The offset of the first byte that is not the message's.
inline std::optional<size_t> first_wrong(const void* memory, size_t bytes, const MessageId& id) {
  const uint64_t seed = seed_of(id);
  const auto* in = static_cast<const unsigned char*>(memory);
  for (size_t i = 0; i * 8 < bytes; ++i) {
    const size_t length = bytes - i * 8 < 8 ? bytes - i * 8 : 8;
    uint64_t wanted = word_of(seed, i);
    uint64_t found = wanted;
    std::memcpy(&found, in + 8 * i, length);
    if (found != wanted) {
      size_t byte = 0;
      for (uint64_t differs = found ^ wanted; (differs & 0xffU) == 0; differs >>= 8U) {
        ++byte;
      }
      return i * 8 + byte;
    }
  }
  return std::nullopt;
}

inline std::string text_of(const MessageId& id) {
  return "message " + std::to_string(id.number) + " from rank " + std::to_string(id.sender) + " on channel " +
         std::to_string(id.channel);
}

inline constexpr size_t kCanaryBytes = 256;

constexpr unsigned char canary_byte(size_t offset) { return static_cast<unsigned char>(0xc5U ^ (offset * 29U)); }

inline void fill_canary(void* memory, size_t bytes) {
  auto* out = static_cast<unsigned char*>(memory);
  for (size_t i = 0; i < bytes; ++i) {
    out[i] = canary_byte(i);
  }
}

/// The offset of the first byte of the canary that was written to.
inline std::optional<size_t> first_dead(const void* memory, size_t bytes) {
  const auto* in = static_cast<const unsigned char*>(memory);
  for (size_t i = 0; i < bytes; ++i) {
    if (in[i] != canary_byte(i)) {
      return i;
    }
  }
  return std::nullopt;
}

}  // namespace ringbolt::test
