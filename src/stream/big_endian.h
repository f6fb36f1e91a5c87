#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

// Numbers as the peer sends them. The codecs of src/wire are beneath the waist, which this layer is above.
namespace ringbolt::stream {

/// Bounds are the caller's business. Pure.
/// Reads sizeof(T) bytes from `at` on.
template <class T>
constexpr T get_be(std::span<const std::byte> in, size_t at) {
  static_assert(std::is_unsigned_v<T>);
  uint64_t value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) {
    value = value << 8U | static_cast<uint64_t>(in[at + i]);
  }
  return static_cast<T>(value);
}

template <class T>
constexpr void put_be(std::span<std::byte> out, size_t at, T value) {
  static_assert(std::is_unsigned_v<T>);
  for (size_t i = 0; i < sizeof(T); ++i) {
    out[at + i] = static_cast<std::byte>(static_cast<uint64_t>(value) >> (8 * (sizeof(T) - 1 - i)));
  }
}

}  // namespace ringbolt::stream
