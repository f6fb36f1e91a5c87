#include "base/copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace ringbolt::base {
namespace {

// Around the lengths where lines and streams begin, lengths that leave every kind of tail, and every place in a line.
TEST(Copy, moves_every_byte_and_no_other) {
  for (const size_t length : {size_t{0}, size_t{1}, size_t{63}, size_t{2047}, size_t{2048}, size_t{2049}, size_t{4096},
                              size_t{4223}, size_t{(128U << 10U) - 1}, size_t{128U << 10U}, size_t{(128U << 10U) + 1},
                              size_t{(1U << 20U) + 255}}) {
    std::vector<uint8_t> source(length + 2);
    for (size_t i = 0; i < source.size(); ++i) {
      source[i] = static_cast<uint8_t>(i * 7 + i / 251);
    }
    for (size_t offset = 1; offset <= (length < 10'000 ? 64 : 1); ++offset) {
      std::vector<uint8_t> target(length + offset + 1, 0xee);
      copy(target.data() + offset, source.data() + 1, length);
      EXPECT_EQ(target[offset - 1], 0xee);
      EXPECT_EQ(target.back(), 0xee);
      EXPECT_TRUE(std::equal(source.begin() + 1, source.end() - 1, target.begin() + static_cast<ptrdiff_t>(offset)))
          << length << " at " << offset;
    }
  }
}

TEST(Copy, short_ones_move_every_byte_and_no_other) {
  for (size_t length = 0; length <= kLeastCalled + 1; ++length) {
    std::vector<uint8_t> source(length + 1);
    for (size_t i = 0; i < source.size(); ++i) {
      source[i] = static_cast<uint8_t>(i * 7 + 1);
    }
    std::vector<uint8_t> target(length + 2, 0xee);
    copy_short(target.data() + 1, source.data() + 1, length);
    EXPECT_EQ(target.front(), 0xee) << length;
    EXPECT_EQ(target.back(), 0xee) << length;
    EXPECT_TRUE(std::equal(source.begin() + 1, source.end(), target.begin() + 1)) << length;
  }
}

}  // namespace
}  // namespace ringbolt::base
