#include "verify/stamp.h"

#include <gtest/gtest.h>

#include <vector>

namespace ringbolt::tools::verify {
namespace {

using Bytes = std::vector<std::byte>;
constexpr uint64_t kStampSeed = 42;

Bytes message_of(const Stamp& stamp) {
  Bytes message(stamp.length);
  write_message(message, kStampSeed, stamp);
  return message;
}

TEST(Stamp, messages_of_every_length_are_themselves) {
  for (const uint32_t length : {0U, 1U, 7U, 8U, 15U, 16U, 17U, 24U, 63U, 64U, 65U, 1000U}) {
    const Stamp stamp{3, 2, 77, length};
    const Bytes message = message_of(stamp);
    EXPECT_TRUE(is_message(message, kStampSeed, stamp)) << length;
    EXPECT_FALSE(message_difference(message, kStampSeed, stamp)) << length;
    EXPECT_EQ(stamp_in(message, kStampSeed).has_value(), length >= kTellingBytes) << length;
  }
}

TEST(Stamp, tells_who_it_is) {
  const Stamp stamp{65535, 255, (uint64_t{1} << 40U) - 1, 4096};
  EXPECT_EQ(stamp_in(message_of(stamp), kStampSeed), stamp);
  EXPECT_FALSE(stamp_in(message_of(stamp), kStampSeed + 1));
  EXPECT_FALSE(stamp_in(Bytes(64), kStampSeed));
}

TEST(Stamp, every_turned_bit_shows) {
  const Stamp stamp{1, 0, 5, 97};
  for (size_t bit = 0; bit < stamp.length * 8; ++bit) {
    Bytes message = message_of(stamp);
    message[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_FALSE(is_message(message, kStampSeed, stamp)) << bit;
    const auto found = message_difference(message, kStampSeed, stamp);
    ASSERT_TRUE(found) << bit;
    EXPECT_EQ(found->first, bit / 8);
    EXPECT_EQ(found->bytes, 1U);
    EXPECT_EQ(found->bits, 1U);
    EXPECT_EQ(found->found ^ found->expected, std::byte{1} << (bit % 8));
  }
}

TEST(Stamp, other_messages_differ_nearly_everywhere) {
  const Stamp stamp{1, 0, 5, 1024};
  const Bytes message = message_of(stamp);
  for (const Stamp& other : {Stamp{2, 0, 5, 1024}, Stamp{1, 1, 5, 1024}, Stamp{1, 0, 6, 1024}, Stamp{1, 0, 5, 1023}}) {
    const auto found = message_difference(std::span(message).first(other.length), kStampSeed, other);
    ASSERT_TRUE(found);
    EXPECT_GT(found->bytes, 900U);
    EXPECT_FALSE(is_message(message, kStampSeed, other));
  }
}

TEST(Stamp, shifted_data_shows) {
  Bytes pattern(512);
  fill(pattern, 0, 9);
  for (size_t shift = 1; shift < 400; ++shift) {
    EXPECT_FALSE(is_filled(std::span(pattern).subspan(shift, 100), 0, 9)) << shift;
    EXPECT_TRUE(is_filled(std::span(pattern).subspan(shift, 100), shift, 9)) << shift;
  }
}

}  // namespace
}  // namespace ringbolt::tools::verify
