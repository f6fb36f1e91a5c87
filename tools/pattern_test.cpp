#include "pattern.h"

#include <vector>

#include <gtest/gtest.h>

namespace ringbolt::tools {
namespace {

std::vector<std::byte> filled(size_t length, uint32_t number) {
  std::vector<std::byte> bytes(length);
  fill_pattern(bytes, number);
  return bytes;
}

TEST(Pattern, passes_what_it_filled) {
  for (const size_t length : {0U, 1U, 7U, 8U, 9U, 31U, 32U, 33U, 4096U, 100'001U}) {
    EXPECT_EQ(find_mismatch(filled(length, 5), 5), std::nullopt) << length;
  }
}

TEST(Pattern, finds_every_single_wrong_byte) {
  for (size_t wrong = 0; wrong < 77; ++wrong) {
    std::vector<std::byte> bytes = filled(77, 3);
    bytes[wrong] ^= std::byte{0x40};
    EXPECT_EQ(find_mismatch(bytes, 3), wrong);
  }
}

TEST(Pattern, finds_other_numbers_and_shifts) {
  for (const uint32_t other : {0U, 1U, 2U, 4U, 7U}) {
    EXPECT_NE(find_mismatch(filled(64, other), 3), std::nullopt) << other;
  }
  const std::vector<std::byte> bytes = filled(4096 + 64, 3);
  for (const size_t shift : {1U, 8U, 32U, 64U}) {
    EXPECT_NE(find_mismatch(std::span(bytes).subspan(shift, 4096), 3), std::nullopt) << shift;
  }
}

}  // namespace
}  // namespace ringbolt::tools
