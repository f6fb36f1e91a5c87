#include "wire/ipv4_id.h"

#include <array>

#include "base/assert.h"

// A CRC is linear: two packets of one length that differ in the identification alone have ICRCs that differ by
//   identification(x) * x^(32 + 8 * bytes after it)   modulo the polynomial.
// The polynomial is odd, so x has an inverse, and one multiplication gives the identification back. If the result is
// longer than 16 bits, no identification explains the difference.
//
// Numbers are reflected, as in the CRC register: bit 31 is the coefficient of x^0, bit 0 that of x^31.
namespace ringbolt::wire {
namespace {

constexpr uint32_t kPolynomial = 0xedb88320;
constexpr uint32_t kOne = 0x80000000;

constexpr uint32_t times_x(uint32_t value) { return value >> 1 ^ (kPolynomial & (0U - (value & 1U))); }

constexpr uint32_t divided_by_x(uint32_t value) {
  return (value & kOne) != 0 ? (value ^ kPolynomial) << 1 | 1U : value << 1;
}

constexpr uint32_t multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (int bit = 0; bit < 32; ++bit) {
    product ^= b & (0U - (a >> 31));
    a <<= 1;
    b = times_x(b);
  }
  return product;
}

/// 1 / x^exponent.
constexpr uint32_t inverse_power(size_t exponent) {
  uint32_t power = kOne;
  for (size_t i = 0; i < exponent; ++i) {
    power = divided_by_x(power);
  }
  return power;
}

constexpr size_t kIcrcBytes = 4;
constexpr size_t kHeaderBytesAfterId = 14 + 8;  // rest of the IPv4 header, UDP header
constexpr uint32_t kInverseOfWord = inverse_power(32);

/// Entry k is for packets with k words between UDP header and ICRC: enough for 4 KiB of payload and all headers.
constexpr size_t kTableEntries = (4096 + 128) / 4;
constexpr std::array<uint32_t, kTableEntries> make_table() {
  std::array<uint32_t, kTableEntries> table{};
  uint32_t power = inverse_power(32 + 8 * kHeaderBytesAfterId);
  for (uint32_t& entry : table) {
    entry = power;
    for (int bit = 0; bit < 32; ++bit) {
      power = divided_by_x(power);
    }
  }
  return table;
}
constexpr std::array<uint32_t, kTableEntries> kInverse = make_table();

/// Longer packets than RoCE has: a microsecond.
uint32_t inverse_beyond_table(size_t words) {
  uint32_t result = kInverse.back();
  uint32_t power = kInverseOfWord;
  for (size_t rest = words - (kTableEntries - 1); rest != 0; rest >>= 1) {
    if ((rest & 1) != 0) {
      result = multiply(result, power);
    }
    power = multiply(power, power);
  }
  return result;
}

static_assert(times_x(divided_by_x(kOne)) == kOne && divided_by_x(times_x(1)) == 1);
static_assert(multiply(kInverseOfWord, multiply(0x00008000, 0x00008000)) == kOne, "x^-32 * (x^16)^2");

}  // namespace

std::optional<uint16_t> solve_ipv4_id(uint32_t difference, size_t packet_bytes) {
  RINGBOLT_ASSERT(packet_bytes >= kIcrcBytes && packet_bytes % 4 == 0);
  const size_t words = (packet_bytes - kIcrcBytes) / 4;
  const uint32_t inverse = words < kTableEntries ? kInverse[words] : inverse_beyond_table(words);
  const uint32_t polynomial = multiply(difference, inverse);
  if ((polynomial & 0xffff) != 0) {
    return std::nullopt;
  }
  // The first byte of the identification has the higher powers, so it lies in the lower half of what is left.
  return __builtin_bswap16(static_cast<uint16_t>(polynomial >> 16));
}

}  // namespace ringbolt::wire
