#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

/// Reflected CRCs of 32 bits by tables, eight bytes a step ("slicing by 8": Kounavis and Berry 2005): for short pieces,
/// and for processors without carry-less multiplication.
namespace ringbolt::base {

// Reflected: bit 31 is the coefficient of x^0. IEEE 802.3, which InfiniBand's ICRC uses too; Castagnoli's, of iSCSI
// (RFC 3720) and of our own formats.
inline constexpr uint32_t kCrc32Polynomial = 0xedb88320;
inline constexpr uint32_t kCrc32cPolynomial = 0x82f63b78;

/// The register after eight more bits of zeros. `0U - (value & 1U)` is all ones where the lowest bit is set: no
/// branch.
constexpr uint32_t crc_after_zero_byte(uint32_t polynomial, uint32_t value) {
  for (int bit = 0; bit < 8; ++bit) {
    value = value >> 1 ^ (polynomial & (0U - (value & 1U)));
  }
  return value;
}

// 8 KiB for each polynomial, made at compile time.
using CrcTables = std::array<std::array<uint32_t, 256>, 8>;

/// Table k: what a byte does to the register when k bytes follow it.
constexpr CrcTables make_crc_tables(uint32_t polynomial) {
  CrcTables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    tables[0][byte] = crc_after_zero_byte(polynomial, byte);
  }
  for (size_t k = 1; k < tables.size(); ++k) {
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[k - 1][byte];
      tables[k][byte] = before >> 8 ^ tables[0][before & 0xff];
    }
  }
  return tables;
}
template <uint32_t Polynomial>
inline constexpr CrcTables kCrcTables = make_crc_tables(Polynomial);

/// The register after `bytes`; without the inversion before and after. Little-endian machines.
template <uint32_t Polynomial>
uint32_t crc_register_by_tables(uint32_t value, std::span<const std::byte> bytes) {
  static_assert(std::endian::native == std::endian::little);
  const CrcTables& tables = kCrcTables<Polynomial>;
  while (bytes.size() >= 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof word);
    // The register lies over the first four bytes: what it holds are the remainders of those before.
    word ^= value;
    value = 0;
    for (size_t i = 0; i < 8; ++i) {
      value ^= tables[7 - i][word >> (8 * i) & 0xff];
    }
    bytes = bytes.subspan(8);
  }
  if (bytes.size() >= 4) {
    uint32_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof word);
    word ^= value;
    value = tables[3][word & 0xff] ^ tables[2][word >> 8 & 0xff] ^ tables[1][word >> 16 & 0xff] ^ tables[0][word >> 24];
    bytes = bytes.subspan(4);
  }
  for (const std::byte byte : bytes) {
    value = value >> 8 ^ tables[0][(value ^ std::to_integer<uint32_t>(byte)) & 0xff];
  }
  return value;
}

}  // namespace ringbolt::base
