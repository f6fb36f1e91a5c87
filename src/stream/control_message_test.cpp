#include "stream/control_message.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace ringbolt::stream {
namespace {

std::vector<std::byte> bytes_of_hex(std::string_view hex) {
  std::vector<std::byte> bytes;
  const auto digit = [](char c) { return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10); };
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(digit(hex[i]) << 4U | digit(hex[i + 1])));
  }
  return bytes;
}

struct GoldenCommand {
  const char* name;
  std::string_view hex;
  ControlMessage message;
};

// As stock servers and clients send them.
const GoldenCommand kGolden[] = {
    {"keepalive", "0002000000000000000000000000000000000000000000000000000000000000", {.opcode = Opcode::keepalive}},
    {"question",
     "0000000000000000000000000000000000000000000000000000000000000000",
     {.opcode = Opcode::get_server_feature}},
    {"answer",
     "0000000500000000000000000000000000000000000000000000000000000003",
     {.opcode = Opcode::get_server_feature, .select = 5, .features = 3}},
    {"choice",
     "0001010200000000000000000000000000000000000000008000000000000001",
     {.opcode = Opcode::set_client_feature, .select = 0x102, .features = 0x8000000000000001}},
    {"registration",
     "0003000000000000000000000000000000007f0011223000001000000000a1b2",
     {.opcode = Opcode::register_xfer_memory, .address = 0x7f0011223000, .length = 1U << 20U, .key = 0xa1b2}},
};

TEST(ControlMessage, golden_bytes_both_ways) {
  for (const GoldenCommand& golden : kGolden) {
    const auto bytes = bytes_of_hex(golden.hex);
    ASSERT_EQ(bytes.size(), kControlBytes) << golden.name;
    EXPECT_EQ(ControlMessage::parse(bytes), golden.message) << golden.name;
    EXPECT_TRUE(std::ranges::equal(golden.message.emit(), bytes)) << golden.name;
  }
}

TEST(ControlMessage, other_lengths_are_refused) {
  const std::vector<std::byte> bytes(kControlBytes + 1);
  for (const size_t length : {size_t{0}, size_t{1}, kControlBytes - 1, kControlBytes + 1}) {
    EXPECT_FALSE(ControlMessage::parse(std::span(bytes).first(length))) << length;
  }
}

TEST(ControlMessage, unknown_opcodes_are_refused) {
  for (const unsigned opcode : {4U, 5U, 0x100U, 0xffffU}) {
    ControlBytes bytes{};
    bytes[0] = static_cast<std::byte>(opcode >> 8U);
    bytes[1] = static_cast<std::byte>(opcode & 0xffU);
    EXPECT_FALSE(ControlMessage::parse(bytes)) << opcode;
  }
}

TEST(ControlMessage, reserved_bytes_are_ignored) {
  for (const GoldenCommand& golden : kGolden) {
    auto bytes = bytes_of_hex(golden.hex);
    std::fill(bytes.begin() + 4, bytes.begin() + 16, std::byte{0xee});
    EXPECT_EQ(ControlMessage::parse(bytes), golden.message) << golden.name;
  }
}

}  // namespace
}  // namespace ringbolt::stream
