#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

/// Integers at offsets of a byte span, little-endian. Bounds are the caller's business.
namespace ringbolt::base {

template <class T>
// By memcpy, since the offset need not be aligned.
T get_le(std::span<const std::byte> in, size_t at) {
  static_assert(std::is_unsigned_v<T> && std::endian::native == std::endian::little);
  T value;
  std::memcpy(&value, in.data() + at, sizeof value);
  return value;
}

template <class T>
// By memcpy likewise. A machine with the other order does not compile it: no byte is turned here.
void put_le(std::span<std::byte> out, size_t at, T value) {
  static_assert(std::is_unsigned_v<T> && std::endian::native == std::endian::little);
  std::memcpy(out.data() + at, &value, sizeof value);
}

}  // namespace ringbolt::base
