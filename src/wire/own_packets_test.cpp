#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cerrno>

#include "wire/golden_support.h"
#include "wire/greeting.h"
#include "wire/selective_ack.h"

namespace ringbolt::wire {
namespace {

using golden::Bytes;

Bytes emitted(const Greeting& greeting) {
  Bytes out(kGreetingBytes, std::byte{0xee});
  emit(greeting, std::span<std::byte, kGreetingBytes>(out));
  return out;
}

Bytes emitted(const SelectiveAck& ack) {
  Bytes out(kSelectiveAckBytes, std::byte{0xee});
  emit(ack, std::span<std::byte, kSelectiveAckBytes>(out));
  return out;
}

TEST(Greeting, golden_bytes_both_ways) {
  const Bytes asks = golden::from_hex("52424c54 0003 0001 0000000000000000 0102030405060708 0000000000000000");
  EXPECT_EQ(emitted(Greeting{true, false, 0x0102030405060708, 0}), asks);
  EXPECT_EQ(parse_greeting(asks).value(), (Greeting{true, false, 0x0102030405060708, 0}));
  const Bytes answers = golden::from_hex("52424c54 0003 0002 0000000000000000 f1f2f3f4f5f6f7f8 0102030405060708");
  EXPECT_EQ(emitted(Greeting{false, true, 0xf1f2f3f4f5f6f7f8, 0x0102030405060708}), answers);
  EXPECT_EQ(parse_greeting(answers).value(), (Greeting{false, true, 0xf1f2f3f4f5f6f7f8, 0x0102030405060708}));
}

TEST(Greeting, of_later_releases_may_be_longer_but_not_another_version) {
  Bytes bytes = emitted(Greeting{false, false, 3, 0});
  bytes.resize(bytes.size() + 8, std::byte{0x55});
  EXPECT_EQ(parse_greeting(bytes).value().token, 3U);
  bytes[5] = std::byte{4};
  EXPECT_EQ(parse_greeting(bytes).error().value, EPROTONOSUPPORT);
  // Of the release before seals, and of the one before seals with acknowledgements.
  EXPECT_EQ(parse_greeting(golden::from_hex("52424c54 0001 0001 00000001 00000000")).error().value, EPROTONOSUPPORT);
  bytes[5] = std::byte{2};
  EXPECT_EQ(parse_greeting(bytes).error().value, EPROTONOSUPPORT);
}

TEST(Greeting, with_other_magic_too_short_or_without_a_token_is_refused) {
  const Bytes bytes = emitted(Greeting{true, true, 3, 4});
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_EQ(parse_greeting(std::span(bytes).first(length)).error().value, EBADMSG) << length;
  }
  for (size_t at = 0; at < 4; ++at) {
    Bytes other = bytes;
    other[at] ^= std::byte{1};
    EXPECT_EQ(parse_greeting(other).error().value, EBADMSG) << at;
  }
  EXPECT_EQ(parse_greeting(emitted(Greeting{true, true, 0, 4})).error().value, EBADMSG);
}

TEST(SelectiveAck, golden_bytes_both_ways) {
  SelectiveAck ack;
  for (const size_t bit : {0U, 9U, 63U, 64U, 255U}) {
    ack.set(bit);
  }
  const Bytes bytes = golden::from_hex(
      "0102000000000080 0100000000000000"
      "0000000000000000 0000000000000080");
  EXPECT_EQ(emitted(ack), bytes);
  EXPECT_EQ(parse_selective_ack(bytes).value(), ack);
}

TEST(SelectiveAck, has_what_was_set_and_nothing_else) {
  for (size_t set = 0; set < kSelectiveAckBits; ++set) {
    SelectiveAck ack;
    ack.set(set);
    for (size_t i = 0; i < kSelectiveAckBits; ++i) {
      ASSERT_EQ(ack.has(i), i == set);
    }
  }
}

TEST(SelectiveAck, of_another_length_is_refused) {
  for (const size_t length : {0U, 1U, 31U, 33U, 36U, 64U}) {
    EXPECT_EQ(parse_selective_ack(Bytes(length)).error().value, EBADMSG) << length;
  }
}

RC_GTEST_PROP(SelectiveAckProperty, comes_back_as_it_was, (uint64_t a, uint64_t b, uint64_t c, uint64_t d)) {
  const SelectiveAck ack{{a, b, c, d}};
  RC_ASSERT(parse_selective_ack(emitted(ack)).value() == ack);
}

}  // namespace
}  // namespace ringbolt::wire
