#include "base/adaptive_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/copy.h"

namespace ringbolt::base {
namespace {

/// Lets it choose between ways that take so long.
CopyWay chosen(CopyChoice& choice, uint64_t through, uint64_t past) {
  for (uint32_t i = 0; i < 2 * CopyChoice::kTries; ++i) {
    EXPECT_EQ(choice.next(), static_cast<CopyWay>(i % 2));
    choice.note(choice.next() == CopyWay::through_caches ? through : past);
  }
  return choice.next();
}

TEST(CopyChoice, takes_the_faster_way_for_many_blocks_and_tries_again) {
  CopyChoice choice;
  EXPECT_EQ(chosen(choice, 400, 150), CopyWay::past_caches);
  for (uint32_t i = 0; i < CopyChoice::kBlocksPerChoice; ++i) {
    EXPECT_EQ(choice.next(), CopyWay::past_caches);
    choice.note(1000);
  }
  EXPECT_EQ(chosen(choice, 100, 150), CopyWay::through_caches);
}

TEST(CopyChoice, stays_in_the_caches_unless_main_memory_is_much_faster) {
  CopyChoice choice;
  EXPECT_EQ(chosen(choice, 120, 100), CopyWay::through_caches);
}

TEST(CopyChoice, an_interrupted_block_does_not_decide) {
  CopyChoice choice;
  for (uint32_t i = 0; i < 2 * CopyChoice::kTries; ++i) {
    const bool is_through = choice.next() == CopyWay::through_caches;
    choice.note(i == 4 ? 1'000'000 : is_through ? 100 : 150);
  }
  EXPECT_EQ(choice.next(), CopyWay::through_caches);
}

// Ends of every kind, beginnings that no wide store may have.
TEST(AdaptiveCopy, moves_every_byte_and_no_other) {
  AdaptiveCopy copier;
  for (uint32_t round = 0; round < 3 * CopyChoice::kTries; ++round) {
    const size_t shift = round % 2 == 0 ? 64 : 3;
    const size_t length = AdaptiveCopy::kLeastBytes + round * 7;
    std::vector<std::byte> source(length);
    for (size_t i = 0; i < length; ++i) {
      source[i] = static_cast<std::byte>(i * 7 + round);
    }
    std::vector<std::byte> target(length + 128, std::byte{0xee});
    auto* begin = target.data() + shift;
    round % 3 == 0 ? copy_past_caches(begin, source.data(), length) : copier.copy(begin, source.data(), length);
    EXPECT_TRUE(std::equal(source.begin(), source.end(), begin)) << round;
    EXPECT_EQ(begin[-1], std::byte{0xee});
    EXPECT_EQ(begin[length], std::byte{0xee});
  }
}

}  // namespace
}  // namespace ringbolt::base
