#include "wire/stream_hello.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "wire/golden_support.h"

namespace ringbolt::wire {
namespace {

using golden::Bytes;
using golden::from_hex;

// Made from docs/formats/stream.md: versions 1 to 3, features 5, incarnation 1122334455667788.
constexpr const char* kHello =
    "0100030005000000"
    "8877665544332211";

TEST(StreamHello, golden_bytes_both_ways) {
  const Bytes bytes = from_hex(kHello);
  const auto hello = parse_stream_hello(bytes);
  ASSERT_TRUE(hello);
  EXPECT_EQ(hello->first_version, 1);
  EXPECT_EQ(hello->last_version, 3);
  EXPECT_EQ(hello->features, 5U);
  EXPECT_EQ(hello->incarnation, 0x1122334455667788U);
  Bytes out(kStreamHelloBytes);
  emit(*hello, out);
  EXPECT_EQ(out, bytes);
}

TEST(StreamHello, a_greeting_may_follow_up_to_its_bound) {
  Bytes bytes = from_hex(kHello);
  EXPECT_TRUE(stream_greeting(bytes).empty());
  bytes.resize(kMaxStreamHelloBytes);
  ASSERT_TRUE(parse_stream_hello(bytes));
  EXPECT_EQ(stream_greeting(bytes).size(), kMaxStreamGreetingBytes);
  bytes.resize(kMaxStreamHelloBytes + 1);
  EXPECT_EQ(parse_stream_hello(bytes).error().value, EBADMSG);
}

TEST(StreamHello, refuses_short_ones_other_versions_and_nobody) {
  Bytes bytes = from_hex(kHello);
  for (size_t length = 0; length < kStreamHelloBytes; ++length) {
    EXPECT_EQ(parse_stream_hello(std::span(bytes).first(length)).error().value, EBADMSG) << length;
  }
  StreamHello hello;
  EXPECT_EQ((emit(hello, bytes), parse_stream_hello(bytes)).error().value, EBADMSG) << "incarnation 0";
  hello.incarnation = 1;
  hello.first_version = 2;
  hello.last_version = 3;
  EXPECT_EQ((emit(hello, bytes), parse_stream_hello(bytes)).error().value, EPROTONOSUPPORT) << "newer";
  hello.first_version = hello.last_version = 0;
  EXPECT_EQ((emit(hello, bytes), parse_stream_hello(bytes)).error().value, EPROTONOSUPPORT) << "older";
}

}  // namespace
}  // namespace ringbolt::wire
