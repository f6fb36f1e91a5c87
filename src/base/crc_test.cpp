#include "base/crc.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/crc_folding.h"
#include "base/crc_tables.h"

namespace ringbolt::base {
namespace {

uint32_t crc_of(std::string_view text) { return crc32(0, std::as_bytes(std::span(text))); }

/// Bit by bit, as the polynomial is written down.
uint32_t slow_crc(uint32_t polynomial, uint32_t crc, std::span<const std::byte> bytes) {
  crc = ~crc;
  for (const std::byte byte : bytes) {
    crc ^= std::to_integer<uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) {
      crc = crc >> 1 ^ ((crc & 1) != 0 ? polynomial : 0U);
    }
  }
  return ~crc;
}

uint32_t slow_crc32(uint32_t crc, std::span<const std::byte> bytes) { return slow_crc(0xedb88320U, crc, bytes); }

std::vector<std::byte> counting_bytes(size_t size) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<std::byte>(i * 131 + i / 251);
  }
  return bytes;
}

TEST(Crc32, gives_published_check_values) {
  EXPECT_EQ(crc_of(""), 0U);
  EXPECT_EQ(crc_of("123456789"), 0xcbf43926U);  // the check value of CRC-32/ISO-HDLC
  EXPECT_EQ(crc_of("The quick brown fox jumps over the lazy dog"), 0x414fa339U);
}

TEST(Crc32, agrees_with_polynomial_at_every_length_and_alignment) {
  const std::vector<std::byte> bytes = counting_bytes(700);
  for (size_t first = 0; first < 17; ++first) {
    for (size_t length = 0; first + length <= bytes.size(); ++length) {
      const auto part = std::span(bytes).subspan(first, length);
      ASSERT_EQ(crc32(0, part), slow_crc32(0, part)) << first << "+" << length;
      ASSERT_EQ(~crc_register_by_tables<kCrc32Polynomial>(~0U, part), slow_crc32(0, part))
          << first << "+" << length << " by tables";
    }
  }
}

TEST(Crc32, by_folding_agrees_with_tables_on_every_number_of_blocks) {
  if (widest_crc32_folding() == Crc32Folding::none) {
    GTEST_SKIP() << "skip: this processor has no carry-less multiplication";
  }
  const std::vector<std::byte> bytes = counting_bytes(4200 + 16);
  for (size_t length = 16; length <= 4200; length += 16) {
    for (const uint32_t before : {0U, 1U, 0x80000000U, 0xffffffffU, 0x12345678U}) {
      const auto part = std::span(bytes).subspan(length % 7, length);
      const uint32_t expected = crc_register_by_tables<kCrc32Polynomial>(before, part);
      for (const auto folding : {Crc32Folding::bits_128, Crc32Folding::bits_256, Crc32Folding::bits_512}) {
        if (folding <= widest_crc32_folding()) {
          ASSERT_EQ(fold_crc32(folding, before, part), expected)
              << length << " after " << before << ", way " << static_cast<int>(folding);
        }
      }
    }
  }
}

TEST(Crc32, of_single_bits_is_linear) {
  // Each bit of a message on its own, so that no two mistakes cancel.
  std::vector<std::byte> bytes(160);
  const uint32_t zeros = crc32(0, bytes);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] = std::byte{1} << (bit % 8);
    ASSERT_EQ(crc32(0, bytes), slow_crc32(0, bytes)) << "bit " << bit;
    ASSERT_NE(crc32(0, bytes), zeros) << "bit " << bit;
    bytes[bit / 8] = std::byte{0};
  }
}

TEST(Crc32, goes_on_where_it_stopped) {
  const std::vector<std::byte> bytes = counting_bytes(300);
  const uint32_t whole = crc32(0, bytes);
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    const auto all = std::span(bytes);
    ASSERT_EQ(crc32(crc32(0, all.first(cut)), all.subspan(cut)), whole) << "cut at " << cut;
  }
}

TEST(Crc32, of_blocks_is_that_of_the_message_at_their_end) {
  const std::vector<std::byte> bytes = counting_bytes(300);
  for (size_t length = 4; length <= bytes.size(); ++length) {
    const auto message = std::span(bytes).first(length);
    for (const size_t more : {size_t{0}, size_t{16}, size_t{64}}) {
      std::vector<std::byte> blocks((length + 15) / 16 * 16 + more);
      const auto place = blocks.end() - static_cast<ptrdiff_t>(length);
      std::copy(message.begin(), message.end(), place);
      std::for_each(place, place + 4, [](std::byte& byte) { byte = ~byte; });
      ASSERT_EQ(crc32_of_blocks(blocks), slow_crc32(0, message)) << length << " bytes, " << more << " more zeros";
      ASSERT_EQ(~crc_register_by_tables<kCrc32Polynomial>(0, blocks), slow_crc32(0, message)) << "by tables";
    }
  }
}

TEST(Crc32, takes_empty_span_without_memory) { EXPECT_EQ(crc32(0x12345678, {}), 0x12345678U); }

TEST(Crc32c, gives_published_check_values) {
  // RFC 3720, appendix B.4, and the check value of CRC-32/ISCSI.
  std::vector<std::byte> bytes(32);
  EXPECT_EQ(crc32c(0, bytes), 0x8a9136aaU);
  std::fill(bytes.begin(), bytes.end(), std::byte{0xff});
  EXPECT_EQ(crc32c(0, bytes), 0x62a8ab43U);
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(i);
  }
  EXPECT_EQ(crc32c(0, bytes), 0x46dd794eU);
  EXPECT_EQ(crc32c(0, std::as_bytes(std::span(std::string_view("123456789")))), 0xe3069283U);
}

TEST(Crc32c, agrees_with_polynomial_at_every_length_alignment_and_cut) {
  const std::vector<std::byte> bytes = counting_bytes(300);
  for (size_t first = 0; first < 17; ++first) {
    for (size_t length = 0; first + length <= bytes.size(); ++length) {
      const auto part = std::span(bytes).subspan(first, length);
      const uint32_t expected = slow_crc(0x82f63b78U, 0, part);
      ASSERT_EQ(crc32c(0, part), expected) << first << "+" << length;
      ASSERT_EQ(crc32c(crc32c(0, part.first(length / 3)), part.subspan(length / 3)), expected)
          << first << "+" << length;
      ASSERT_EQ(~crc_register_by_tables<kCrc32cPolynomial>(~0U, part), expected)
          << first << "+" << length << " by tables";
    }
  }
}

TEST(Crc32c, of_a_header_is_that_of_72_bytes) {
  const std::vector<std::byte> bytes = counting_bytes(72 + 9);
  for (size_t first = 0; first < 9; ++first) {
    const auto header = std::span(bytes).subspan(first).first<72>();
    EXPECT_EQ(crc32c_of_72(header), slow_crc(0x82f63b78U, 0, header)) << first;
  }
}

TEST(Crc32c, agrees_with_polynomial_where_registers_are_wide) {
  const std::vector<std::byte> bytes = counting_bytes(1400);
  for (size_t first = 0; first < 3; ++first) {
    for (size_t length = 500; first + length <= bytes.size(); ++length) {
      const auto part = std::span(bytes).subspan(first, length);
      ASSERT_EQ(crc32c(7, part), slow_crc(0x82f63b78U, 7, part)) << first << "+" << length;
    }
  }
}

}  // namespace
}  // namespace ringbolt::base
