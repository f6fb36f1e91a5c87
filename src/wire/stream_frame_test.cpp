#include "wire/stream_frame.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cerrno>

#include "base/crc.h"
#include "wire/golden_support.h"
#include "wire/golden_thunderbolt.h"

namespace ringbolt::wire {
namespace {

using golden::Bytes;
using golden::from_hex;

Bytes emitted(const StreamHeader& header, const Bytes& payload) {
  Bytes out(kStreamHeaderBytes + payload.size(), std::byte{0xee});
  EXPECT_EQ(emit(header, payload, out), out.size());
  return out;
}

Bytes hello() {
  StreamHeader header;
  header.type = StreamType::hello;
  header.epoch = 7;
  return emitted(header, Bytes(16, std::byte{0x33}));
}

TEST(StreamFrame, golden_bytes_both_ways) {
  const Bytes bytes = from_hex(golden::kStreamData);
  const auto header = parse_stream_header(bytes);
  ASSERT_TRUE(header);
  const StreamHeader expected{.type = StreamType::data,
                              .is_last = true,
                              .epoch = 0x11223344,
                              .sequence = 5,
                              .length = 4,
                              .expected = 3,
                              .credit = 64,
                              .destination_qp = 0x901,
                              .payload_crc = 0x189d0564};
  EXPECT_EQ(*header, expected);
  const auto payload = std::span(bytes).subspan(kStreamHeaderBytes);
  EXPECT_TRUE(is_intact(*header, payload));
  EXPECT_FALSE(is_intact(*header, payload.first(3)));
  EXPECT_EQ(emitted(*header, Bytes(payload.begin(), payload.end())), bytes);
}

TEST(StreamFrame, every_flipped_bit_is_noticed) {
  const Bytes bytes = from_hex(golden::kStreamData);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    Bytes other = bytes;
    other[bit / 8] ^= std::byte{1} << (bit % 8);
    const auto header = parse_stream_header(other);
    EXPECT_FALSE(header && is_intact(*header, std::span(other).subspan(kStreamHeaderBytes))) << bit;
  }
}

TEST(StreamFrame, refuses_what_has_a_good_checksum_but_no_sense) {
  const auto is_refused = [](auto spoil) {
    Bytes bytes = from_hex(golden::kStreamData);
    spoil(std::span(bytes));
    put_le(std::span(bytes), 36, base::crc32c(0, std::span(bytes).first(36)));
    const auto header = parse_stream_header(bytes);
    return !header && header.error().value == EBADMSG;
  };
  EXPECT_FALSE(is_refused([](auto) {}));
  EXPECT_TRUE(is_refused([](auto out) { put_le(out, 4, uint8_t{0}); }));
  EXPECT_TRUE(is_refused([](auto out) { put_le(out, 4, uint8_t{8}); }));
  EXPECT_TRUE(is_refused([](auto out) { put_le(out, 5, uint8_t{2}); }));
  EXPECT_TRUE(is_refused([](auto out) { put_le(out, 6, uint16_t{48}); }));
  EXPECT_TRUE(is_refused([](auto out) { put_le(out, 8, uint32_t{0}); }));
  EXPECT_TRUE(is_refused([](auto out) { put_le(out, 16, uint32_t{kStreamPayloadBytes + 1}); }));
}

TEST(StreamFrame, hunts_for_the_hello_behind_what_an_older_stream_left) {
  Bytes bytes = from_hex(golden::kStreamData);  // a whole frame, but no HELLO
  bytes.resize(bytes.size() - 2);               // cut short: its end was lost
  EXPECT_EQ(hunt_for_hello(bytes).hello, std::nullopt);
  const size_t at = bytes.size();
  const Bytes greeting = hello();
  for (size_t length = 0; length < greeting.size(); ++length) {
    Bytes seen = bytes;
    seen.insert(seen.end(), greeting.begin(), greeting.begin() + static_cast<ptrdiff_t>(length));
    const StreamHunt hunt = hunt_for_hello(seen);
    EXPECT_EQ(hunt.hello.has_value(), length >= kStreamHeaderBytes) << length;
    EXPECT_LE(hunt.useless, at) << "the beginning of the HELLO would be thrown away";
    EXPECT_TRUE(!hunt.hello || *hunt.hello == at);
  }
}

RC_GTEST_PROP(StreamFrame, comes_back_as_it_was_sent, ()) {
  StreamHeader header;
  header.type = static_cast<StreamType>(*rc::gen::inRange(1, 8));
  header.is_last = *rc::gen::arbitrary<bool>();
  header.epoch = *rc::gen::nonZero<uint32_t>();
  header.sequence = *rc::gen::arbitrary<uint32_t>();
  header.expected = *rc::gen::arbitrary<uint32_t>();
  header.credit = *rc::gen::arbitrary<uint32_t>();
  header.destination_qp = *rc::gen::arbitrary<uint32_t>();
  const Bytes payload(*rc::gen::inRange<size_t>(0, kStreamPayloadBytes + 1), std::byte{0xa5});
  header.length = static_cast<uint32_t>(payload.size());
  header.payload_crc = base::crc32c(0, payload);
  const Bytes bytes = emitted(header, payload);
  RC_ASSERT(parse_stream_header(bytes).value() == header);
  RC_ASSERT(is_intact(header, std::span(bytes).subspan(kStreamHeaderBytes)));
}

}  // namespace
}  // namespace ringbolt::wire
