#include "rsocket/connection_data.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <vector>

namespace ringbolt::rsocket {
namespace {

ConnectionData example() {
  ConnectionData data;
  data.is_big_endian = false;
  data.credits = 384;
  data.iomap_entries = 1;
  data.targets = {0x0102030405060708, 0x11121314, 2};
  data.ring = {0xa1a2a3a4a5a6a7a8, 0xb1b2b3b4, 65536};
  return data;
}

std::vector<int> as_numbers(std::span<const std::byte> bytes) {
  std::vector<int> numbers;
  for (const std::byte b : bytes) {
    numbers.push_back(std::to_integer<int>(b));
  }
  return numbers;
}

TEST(ConnectionData, lies_as_the_protocol_says) {
  const std::vector<int> expected = {1,    2,    0x01, 0x80, 0,    0,    0,    1,     // version, flags, credits, iomap
                                     0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08,  // the table's address
                                     0x11, 0x12, 0x13, 0x14, 0,    0,    0,    2,     // its key and entries
                                     0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8,  // the ring's address
                                     0xb1, 0xb2, 0xb3, 0xb4, 0,    1,    0,    0};    // its key and bytes
  EXPECT_EQ(as_numbers(example().emit()), expected);
}

TEST(ConnectionData, returns_what_was_put_in) {
  ConnectionData data = example();
  EXPECT_EQ(ConnectionData::parse(data.emit()).value(), data);
  data.is_big_endian = true;
  data.has_iomap = false;
  data.credits = 0xffff;
  EXPECT_EQ(ConnectionData::parse(data.emit()).value(), data);
}

TEST(ConnectionData, ignores_the_padding_of_a_longer_field) {
  const auto bytes = example().emit();
  std::vector<std::byte> padded(bytes.begin(), bytes.end());
  padded.resize(196);
  EXPECT_EQ(ConnectionData::parse(padded).value(), example());
}

TEST(ConnectionData, refuses_a_short_field_and_another_version) {
  auto bytes = example().emit();
  EXPECT_EQ(ConnectionData::parse(std::span(bytes).first(39)).error().value, EPROTO);
  EXPECT_EQ(ConnectionData::parse({}).error().value, EPROTO);
  bytes[0] = std::byte{2};
  EXPECT_EQ(ConnectionData::parse(bytes).error().value, EPROTO);
}

TEST(ConnectionData, rounds_iomap_sizes_down_to_what_the_code_can_say) {
  for (const uint32_t exact : {0U, 1U, 127U, 128U, 256U, 512U, 0x7f00U}) {
    EXPECT_EQ(round_iomap_entries(exact), exact);
  }
  EXPECT_EQ(round_iomap_entries(300), 256U);
  EXPECT_EQ(round_iomap_entries(0xffffffff), 0x7f00U);
}

TEST(ConnectionData, says_every_rounded_size_exactly) {
  for (uint32_t entries = 0; entries < 0x8000; entries += 37) {
    ConnectionData data = example();
    data.iomap_entries = round_iomap_entries(entries);
    EXPECT_LE(data.iomap_entries, entries);
    EXPECT_EQ(ConnectionData::parse(data.emit())->iomap_entries, data.iomap_entries);
  }
}

}  // namespace
}  // namespace ringbolt::rsocket
