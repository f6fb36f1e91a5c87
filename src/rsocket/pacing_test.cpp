#include <gtest/gtest.h>

#include "rsocket/keepalive.h"
#include "rsocket/piece_size.h"

namespace ringbolt::rsocket {
namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;

TEST(Keepalive, is_due_after_so_long_without_a_word) {
  Keepalive keepalive;
  keepalive.restart(5 * kSecondNs);
  EXPECT_FALSE(keepalive.is_due(5 * kSecondNs, 3));
  EXPECT_FALSE(keepalive.is_due(8 * kSecondNs - 1, 3));
  EXPECT_TRUE(keepalive.is_due(8 * kSecondNs, 3));
}

TEST(Keepalive, begins_anew_with_each_word) {
  Keepalive keepalive;
  keepalive.restart(5 * kSecondNs);
  keepalive.restart(7 * kSecondNs);
  EXPECT_FALSE(keepalive.is_due(8 * kSecondNs, 3));
  EXPECT_TRUE(keepalive.is_due(10 * kSecondNs, 3));
}

/// TCP_KEEPIDLE takes any positive int: 68 years, which are more nanoseconds than 32 bits have.
TEST(Keepalive, can_be_as_long_as_an_option_says) {
  constexpr int kLongest = 0x7fffffff;
  Keepalive keepalive;
  keepalive.restart(kSecondNs);
  EXPECT_FALSE(keepalive.is_due(100'000 * kSecondNs, kLongest));
  EXPECT_TRUE(keepalive.is_due((uint64_t{kLongest} + 1) * kSecondNs, kLongest));
}

TEST(PieceSize, grows_from_short_to_long) {
  PieceSize size;
  for (const uint32_t expected : {8192U, 16384U, 32768U, 65536U, 65536U}) {
    EXPECT_EQ(size.bytes(), expected);
    size.grow();
  }
}

}  // namespace
}  // namespace ringbolt::rsocket
