#include "rsocket/connection_data.h"

#include <algorithm>
#include <cerrno>
#include <concepts>

namespace ringbolt::rsocket {
namespace {

constexpr uint8_t kFlagBigEndian = 1U << 0U;
constexpr uint8_t kFlagIomap = 1U << 1U;

constexpr uint32_t kLargestPlainCode = 128;
// Seven bits of an upper byte.
constexpr uint32_t kLargestEntries = 0x7f00;

template <std::unsigned_integral T>
void put(std::span<std::byte> out, size_t at, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) {
    out[at + i] = static_cast<std::byte>(value >> (8 * (sizeof(T) - 1 - i)));
  }
}

template <std::unsigned_integral T>
T get(std::span<const std::byte> in, size_t at) {
  uint64_t value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) {
    value = (value << 8U) | std::to_integer<uint64_t>(in[at + i]);
  }
  return static_cast<T>(value);
}

void put_block(std::span<std::byte> out, size_t at, const RemoteBlock& block) {
  put(out, at, block.address);
  put(out, at + 8, block.key);
  put(out, at + 12, block.length);
}

RemoteBlock get_block(std::span<const std::byte> in, size_t at) {
  return {get<uint64_t>(in, at), get<uint32_t>(in, at + 8), get<uint32_t>(in, at + 12)};
}

uint8_t code_of(uint32_t entries) {
  const uint32_t code = entries <= kLargestPlainCode ? entries : kLargestPlainCode | (entries >> 8U);
  return static_cast<uint8_t>(code);
}

uint32_t entries_of(uint8_t code) { return code <= kLargestPlainCode ? code : (code & (kLargestPlainCode - 1)) << 8U; }

}  // namespace

std::array<std::byte, ConnectionData::kBytes> ConnectionData::emit() const {
  std::array<std::byte, kBytes> out{};
  put<uint8_t>(out, 0, kVersion);
  put<uint8_t>(out, 1, static_cast<uint8_t>((is_big_endian ? kFlagBigEndian : 0) | (has_iomap ? kFlagIomap : 0)));
  put<uint16_t>(out, 2, credits);
  put<uint8_t>(out, 7, code_of(iomap_entries));
  put_block(out, 8, targets);
  put_block(out, 24, ring);
  return out;
}

base::Result<ConnectionData> ConnectionData::parse(std::span<const std::byte> bytes) {
  if (bytes.size() < kBytes || get<uint8_t>(bytes, 0) != kVersion) {
    return base::fail(EPROTO);
  }
  const auto flags = get<uint8_t>(bytes, 1);
  ConnectionData data;
  data.is_big_endian = (flags & kFlagBigEndian) != 0;
  data.has_iomap = (flags & kFlagIomap) != 0;
  data.credits = get<uint16_t>(bytes, 2);
  data.iomap_entries = entries_of(get<uint8_t>(bytes, 7));
  data.targets = get_block(bytes, 8);
  data.ring = get_block(bytes, 24);
  return data;
}

uint32_t round_iomap_entries(uint32_t entries) { return entries_of(code_of(std::min(entries, kLargestEntries))); }

}  // namespace ringbolt::rsocket
