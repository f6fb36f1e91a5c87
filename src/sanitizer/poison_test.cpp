#include "sanitizer/poison.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

namespace ringbolt::sanitizer {
namespace {

constexpr uint32_t kNumber = 0x01020304;

std::vector<std::byte> counted(size_t n) {
  std::vector<std::byte> bytes(n);
  for (size_t i = 0; i < n; ++i) {
    bytes[i] = static_cast<std::byte>(i * 31 + 7);
  }
  return bytes;
}

TEST(Poison, stands_at_any_place_and_length_and_every_change_shows) {
  std::array<std::byte, 300> memory{};
  for (size_t first = 0; first < 9; ++first) {
    for (const size_t length : {size_t{0}, size_t{1}, size_t{7}, size_t{8}, size_t{63}, size_t{200}}) {
      const std::span<std::byte> part = std::span(memory).subspan(first, length);
      fill_with_poison(part, kNumber);
      EXPECT_EQ(first_unpoisoned(part, kNumber), std::nullopt);
      for (size_t at = 0; at < length; ++at) {
        part[at] ^= std::byte{1};
        EXPECT_EQ(first_unpoisoned(part, kNumber), at);
        part[at] ^= std::byte{1};
      }
    }
  }
}

TEST(Poison, is_found_at_any_alignment_with_its_number_alone) {
  std::array<std::byte, 64> memory{};
  fill_with_poison(memory, kNumber);
  for (size_t to = 0; to < 8; ++to) {
    for (size_t from = 0; from < 8; ++from) {
      std::vector<std::byte> copy = counted(100);
      std::memcpy(copy.data() + to, memory.data() + from, 16);  // as who copies it does
      const auto found = find_poison(copy, kNumber - 3, 4);
      ASSERT_TRUE(found);
      EXPECT_EQ(found->number, kNumber);
      EXPECT_LT(found->offset, to + 8);
      EXPECT_EQ(find_poison(copy, kNumber + 1, 100), std::nullopt) << "a number that was not given out";
    }
  }
  EXPECT_EQ(find_poison(std::span(memory).first(7), kNumber, 1), std::nullopt);
  EXPECT_EQ(find_poison(std::vector<std::byte>(100, std::byte{0xa5}), kNumber, 1), std::nullopt);
  EXPECT_EQ(find_poison(counted(1000), 0, 1U << 31U), std::nullopt);
}

TEST(Poison, what_was_there_comes_back_but_where_somebody_wrote) {
  const std::vector<std::byte> before = counted(256);
  alignas(64) std::array<std::byte, 256> memory{};
  std::memcpy(memory.data(), before.data(), before.size());
  fill_with_poison(memory, kNumber);
  memory[70] = std::byte{0x11};
  restore(memory, before.data(), kNumber);
  EXPECT_EQ(std::memcmp(memory.data(), before.data(), 64), 0);
  EXPECT_EQ(memory[70], std::byte{0x11});
  EXPECT_EQ(std::memcmp(memory.data() + 128, before.data() + 128, 128), 0);
}

}  // namespace
}  // namespace ringbolt::sanitizer
