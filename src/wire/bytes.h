#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

/// Fields at offsets of a byte span, big-endian as on a network or little-endian as on Thunderbolt. Bounds are the
/// caller's business: check the length once per packet. Hot path: no allocation.
namespace ringbolt::wire {

template <class T>
constexpr T to_big_endian(T value) {
  static_assert(std::is_unsigned_v<T>);
  if constexpr (sizeof(T) == 1 || std::endian::native == std::endian::big) {
    return value;
  } else if constexpr (sizeof(T) == 2) {
    return __builtin_bswap16(value);
  } else if constexpr (sizeof(T) == 4) {
    return __builtin_bswap32(value);
  } else {
    return __builtin_bswap64(value);
  }
}

template <class T>
T get_be(std::span<const std::byte> in, size_t at) {
  T value;
  std::memcpy(&value, in.data() + at, sizeof value);
  return to_big_endian(value);
}

template <class T>
void put_be(std::span<std::byte> out, size_t at, T value) {
  const T big_endian = to_big_endian(value);
  std::memcpy(out.data() + at, &big_endian, sizeof big_endian);
}

template <class T>
T get_le(std::span<const std::byte> in, size_t at) {
  static_assert(std::is_unsigned_v<T> && std::endian::native == std::endian::little);
  T value;
  std::memcpy(&value, in.data() + at, sizeof value);
  return value;
}

template <class T>
void put_le(std::span<std::byte> out, size_t at, T value) {
  static_assert(std::is_unsigned_v<T> && std::endian::native == std::endian::little);
  std::memcpy(out.data() + at, &value, sizeof value);
}

/// Three bytes. Reads the one behind them as well, which must be there.
inline uint32_t get_be24(std::span<const std::byte> in, size_t at) { return get_be<uint32_t>(in, at) >> 8; }

/// Three bytes; the upper eight bits of `value` are left out.
inline void put_be24(std::span<std::byte> out, size_t at, uint32_t value) {
  put_be<uint16_t>(out, at, static_cast<uint16_t>(value >> 8));
  put_be<uint8_t>(out, at + 2, static_cast<uint8_t>(value));
}

/// `N` bytes as they lie.
template <class T, size_t N>
std::array<T, N> get_bytes(std::span<const std::byte> in, size_t at) {
  static_assert(sizeof(T) == 1);
  std::array<T, N> bytes;
  std::memcpy(bytes.data(), in.data() + at, N);
  return bytes;
}

template <class T, size_t N>
void put_bytes(std::span<std::byte> out, size_t at, const std::array<T, N>& bytes) {
  static_assert(sizeof(T) == 1);
  std::memcpy(out.data() + at, bytes.data(), N);
}

}  // namespace ringbolt::wire
