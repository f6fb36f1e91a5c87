#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cerrno>

#include "wire/golden_support.h"
#include "wire/golden_thunderbolt.h"
#include "wire/thunderbolt_data.h"
#include "wire/thunderbolt_hello.h"

namespace ringbolt::wire {
namespace {

using golden::Bytes;
using golden::from_hex;

Bytes emitted(const ThunderboltHello& hello) {
  Bytes out(kThunderboltHelloBytes, std::byte{0xee});
  emit(hello, std::span<std::byte, kThunderboltHelloBytes>(out));
  return out;
}

/// The header with `payload` bytes behind it.
Bytes framed(Bytes header, size_t payload) {
  header.resize(header.size() + payload, std::byte{0x5a});
  return header;
}

Bytes emitted(const ThunderboltFrame& frame) {
  Bytes out(kThunderboltHeaderBytes, std::byte{0xee});
  emit(frame, std::span<std::byte, kThunderboltHeaderBytes>(out));
  return out;
}

TEST(ThunderboltHello, golden_bytes_both_ways) {
  const Bytes bytes = from_hex(golden::kThunderboltHello);
  const ThunderboltHello hello{.header_route = 0x301,
                               .xdomain_sequence = 2,
                               .op = HelloOp::hello,
                               .flags = 0,
                               .sequence = 0x11223344,
                               .capabilities = kCapabilityUc | kCapabilityRc | kCapabilityRails,
                               .rail = 2,
                               .route = 0x301,
                               .transmit_hop = 1,
                               .receive_hop = 1,
                               .transmit_path = 9,
                               .transmit_ring = 1024,
                               .receive_ring = 1024,
                               .path_flags = kPathFrames};
  EXPECT_EQ(emitted(hello), bytes);
  EXPECT_EQ(parse_thunderbolt_hello(bytes).value(), hello);
}

TEST(ThunderboltHello, refuses_what_is_none) {
  const Bytes bytes = from_hex(golden::kThunderboltHello);
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_EQ(parse_thunderbolt_hello(std::span(bytes).first(length)).error().value, EBADMSG) << length;
  }
  EXPECT_EQ(parse_thunderbolt_hello(framed(bytes, 4)).error().value, EBADMSG);
  // One bit of: length, UUID, type, magic, op, length again.
  for (const size_t at : {8U, 12U, 27U, 28U, 32U, 38U, 40U}) {
    Bytes other = bytes;
    other[at] ^= std::byte{2};
    EXPECT_EQ(parse_thunderbolt_hello(other).error().value, EBADMSG) << at;
  }
  Bytes later = bytes;
  later[36] = std::byte{2};
  EXPECT_EQ(parse_thunderbolt_hello(later).error().value, EPROTONOSUPPORT);
}

TEST(ThunderboltHello, does_not_know_the_top_bit_of_the_header_route) {
  Bytes bytes = from_hex(golden::kThunderboltHello);
  bytes[3] = std::byte{0x80};
  EXPECT_EQ(parse_thunderbolt_hello(bytes).value().header_route, 0x301U);
}

TEST(ThunderboltFrame, golden_bytes_both_ways) {
  const struct {
    const char* hex;
    ThunderboltFrame frame;
  } cases[] = {
      {golden::kThunderboltSend,
       {ThunderboltOp::send, kThunderboltLast | kThunderboltSolicited, 0x901, 0x902, 0x123456, 4048, 8096, 0, 0, 4048}},
      {golden::kThunderboltWriteImmediate,
       {ThunderboltOp::write_immediate, kThunderboltLast, 0x901, 0x902, 7, 64, 0xdeadbeef, 0x7f0011223344, 0xa5a5, 0}},
      {golden::kThunderboltNotReady,
       {ThunderboltOp::send_ack, 0, 0x902, 0x901, 0x123456, 0, static_cast<uint32_t>(ThunderboltAck::not_ready), 0, 0,
        0}},
      {golden::kThunderboltPathCredit, {ThunderboltOp::path_credit, 0, 0, 0, 0, 0, 32, 0, 0, 0}},
  };
  for (const auto& one : cases) {
    const Bytes header = from_hex(one.hex);
    EXPECT_EQ(emitted(one.frame), header);
    const Bytes frame = framed(header, one.frame.length);
    const auto view = parse_thunderbolt_frame(frame);
    ASSERT_TRUE(view) << one.hex;
    EXPECT_EQ(view->frame, one.frame);
    EXPECT_EQ(view->payload.size(), one.frame.length);
  }
}

TEST(ThunderboltFrame, refuses_what_is_none) {
  const Bytes header = from_hex(golden::kThunderboltWriteImmediate);
  const Bytes frame = framed(header, 64);
  ASSERT_TRUE(parse_thunderbolt_frame(frame));
  for (size_t length = 0; length < frame.size(); ++length) {
    EXPECT_EQ(parse_thunderbolt_frame(std::span(frame).first(length)).error().value, EBADMSG) << length;
  }
  EXPECT_EQ(parse_thunderbolt_frame(framed(frame, 1)).error().value, EBADMSG);
  const auto with = [&](size_t at, uint8_t value) {
    Bytes other = frame;
    other[at] = std::byte{value};
    return parse_thunderbolt_frame(other);
  };
  EXPECT_EQ(with(0, 0x55).error().value, EBADMSG);
  EXPECT_EQ(with(4, 2).error().value, EPROTONOSUPPORT);
  EXPECT_EQ(with(6, 40).error().value, EBADMSG);  // header size
  EXPECT_EQ(with(8, 0).error().value, EBADMSG);
  EXPECT_EQ(with(8, 12).error().value, EBADMSG);
  EXPECT_EQ(with(9, 9).error().value, EBADMSG);  // a flag that nobody knows
  EXPECT_EQ(with(10, 1).error().value, EBADMSG);
  EXPECT_EQ(with(23, 1).error().value, EBADMSG);  // a PSN of 25 bits
}

TEST(ThunderboltFrame, of_a_raw_stream_holds_only_its_length) {
  ThunderboltFrame frame{.op = ThunderboltOp::send, .flags = kThunderboltLast | kThunderboltRawStream};
  frame.length = kThunderboltMessageBytes;
  EXPECT_EQ(parse_thunderbolt_frame(emitted(frame)).value().frame, frame);
  EXPECT_FALSE(parse_thunderbolt_frame(framed(emitted(frame), 1)));
  frame.length += 1;
  EXPECT_FALSE(parse_thunderbolt_frame(emitted(frame)));
}

TEST(ThunderboltFrame, fragments_are_full_but_the_last) {
  const auto is_good = [](uint32_t total, uint32_t offset, uint32_t length, bool is_last) {
    ThunderboltFrame frame;
    frame.flags = is_last ? kThunderboltLast : 0;
    frame.offset = offset;
    frame.length = length;
    return is_fragment_of(frame, total);
  };
  EXPECT_TRUE(is_good(0, 0, 0, true));
  EXPECT_FALSE(is_good(0, 0, 0, false));
  EXPECT_TRUE(is_good(4048, 0, 4048, true));
  EXPECT_FALSE(is_good(4048, 4048, 0, true));
  EXPECT_TRUE(is_good(4049, 0, 4048, false));
  EXPECT_TRUE(is_good(4049, 4048, 1, true));
  EXPECT_FALSE(is_good(4049, 0, 4048, true));
  EXPECT_FALSE(is_good(4049, 4048, 1, false));
  EXPECT_FALSE(is_good(8096, 0, 4000, false));
  EXPECT_FALSE(is_good(8096, 100, 4048, false));
  EXPECT_FALSE(is_good(8096, 3 * 4048, 1, true));
  EXPECT_TRUE(is_good(kThunderboltMessageBytes, 4144 * 4048, kThunderboltMessageBytes - 4144 * 4048, true));
  EXPECT_FALSE(is_good(kThunderboltMessageBytes + 1, 0, 4048, false));
}

RC_GTEST_PROP(ThunderboltFrame, comes_back_as_it_was_sent, ()) {
  ThunderboltFrame frame;
  frame.op = static_cast<ThunderboltOp>(*rc::gen::inRange(1, 12));
  frame.flags = static_cast<uint8_t>(*rc::gen::inRange(0, 4));
  frame.destination_qp = *rc::gen::arbitrary<uint32_t>();
  frame.source_qp = *rc::gen::arbitrary<uint32_t>();
  frame.psn = *rc::gen::inRange<uint32_t>(0, 1U << 24U);
  frame.length = *rc::gen::inRange<uint32_t>(0, kThunderboltFragmentBytes + 1);
  frame.immediate = *rc::gen::arbitrary<uint32_t>();
  frame.address = *rc::gen::arbitrary<uint64_t>();
  frame.key = *rc::gen::arbitrary<uint32_t>();
  frame.offset = *rc::gen::arbitrary<uint32_t>();
  RC_ASSERT(parse_thunderbolt_frame(framed(emitted(frame), frame.length)).value().frame == frame);
}

}  // namespace
}  // namespace ringbolt::wire
