#include "base/copy.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace ringbolt::base {
namespace {

// Around the length where streams begin, and lengths that leave every kind of tail.
TEST(Copy, moves_every_byte_and_no_other) {
  for (const size_t length : {size_t{0}, size_t{1}, size_t{63}, size_t{(128U << 10U) - 1}, size_t{128U << 10U},
                              size_t{(128U << 10U) + 1}, size_t{(1U << 20U) + 255}}) {
    std::vector<uint8_t> source(length + 2);
    std::vector<uint8_t> target(length + 2, 0xee);
    for (size_t i = 0; i < source.size(); ++i) {
      source[i] = static_cast<uint8_t>(i * 7 + i / 251);
    }
    copy(target.data() + 1, source.data() + 1, length);
    EXPECT_EQ(target.front(), 0xee);
    EXPECT_EQ(target.back(), 0xee);
    EXPECT_TRUE(std::equal(source.begin() + 1, source.end() - 1, target.begin() + 1)) << length;
  }
}

}  // namespace
}  // namespace ringbolt::base
