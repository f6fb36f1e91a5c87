#include "bringup/port_card.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>

#include "base/crc.h"
#include "bringup/gid_test_support.h"

namespace ringbolt::bringup {
namespace {

using test::gid;

PortCard mac(const std::string& device = "rdma_en2") {
  return {.device = device,
          .port = 1,
          .lid = 0x1234,
          .mtu_bytes = 4096,
          .rate_mbps = 80000,
          .gid_index = 1,
          .gids = {{0, gid("fe80::1")}, {1, gid("10.77.0.1"), GidType::kRoceV2}},
          .capabilities = {.has_uc = true,
                           .counts_frames = true,
                           .most_queue_pairs = 10,
                           .most_regions = 100,
                           .most_work_requests = 4095,
                           .most_sge = 1,
                           .most_message_bytes = 16773120}};
}

std::string hex(std::span<const std::byte> bytes) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (const std::byte one : bytes) {
    text += kDigits[static_cast<unsigned>(one) >> 4U];
    text += kDigits[static_cast<unsigned>(one) & 15U];
  }
  return text;
}

/// Makes the checksum fit again, for what must be refused behind it.
std::vector<std::byte> mended(std::vector<std::byte> bytes) {
  const uint32_t crc = base::crc32c(0, std::span(bytes).first(bytes.size() - 4));
  for (size_t i = 0; i < 4; ++i) {
    bytes[bytes.size() - 4 + i] = static_cast<std::byte>(crc >> (24 - 8 * i));
  }
  return bytes;
}

/// Written by hand from docs/formats/port-card.md; the checksum from another implementation (Python, bit by bit).
constexpr const char* kGolden =
    "52425043"
    "0002"
    "0001"
    "0000005d"
    "08"
    "72646d615f656e32"
    "01"
    "1234"
    "1000"
    "00013880"
    "01"
    "02"
    "00"
    "00"
    "fe800000000000000000000000000001"
    "01"
    "03"
    "00000000000000000000ffff0a4d0001"
    "06"
    "0000000a"
    "00000064"
    "00000fff"
    "00000001"
    "00fff000"
    "45b96cd4";

TEST(PortCard, is_written_as_the_format_says) {
  const std::vector<PortCard> cards = {mac()};
  const auto bytes = emit_cards(cards);
  EXPECT_EQ(hex(bytes), kGolden);
  EXPECT_EQ(*parse_cards(bytes), cards);
  EXPECT_EQ(cards[0].gid(), gid("10.77.0.1"));
}

TEST(PortCard, none_are_cards_too) {
  const auto bytes = emit_cards({});
  EXPECT_EQ(bytes.size(), 16U);
  EXPECT_TRUE(parse_cards(bytes)->empty());
}

TEST(PortCard, comes_back_as_it_was) {
  EXPECT_TRUE(rc::check([] {
    std::vector<PortCard> cards;
    const size_t n_cards = *rc::gen::inRange<size_t>(0, kMostCards + 1);
    for (size_t i = 0; i < n_cards; ++i) {
      PortCard card = mac("d" + std::to_string(i / 2));
      card.port = static_cast<uint8_t>(1 + i % 2);
      card.lid = *rc::gen::arbitrary<uint16_t>();
      card.mtu_bytes = 256U << *rc::gen::inRange(0U, 5U);
      card.rate_mbps = *rc::gen::arbitrary<uint32_t>();
      const auto n_gids = *rc::gen::inRange<size_t>(1, 5);
      card.gids.clear();
      for (size_t k = 0; k < n_gids; ++k) {
        Gid one = *rc::gen::arbitrary<Gid>();
        one[0] |= 1U;
        card.gids.push_back({static_cast<uint8_t>(k * 63 + i), one, static_cast<GidType>(*rc::gen::inRange(0, 4))});
      }
      card.gid_index = card.gids[*rc::gen::inRange<size_t>(0, n_gids)].index;
      card.capabilities.has_rc = *rc::gen::arbitrary<bool>();
      card.capabilities.has_channels = *rc::gen::arbitrary<bool>();
      card.capabilities.most_message_bytes = *rc::gen::arbitrary<uint32_t>();
      cards.push_back(card);
    }
    RC_ASSERT(*parse_cards(emit_cards(cards)) == cards);
  }));
}

TEST(PortCard, is_refused_when_cut_short_or_too_long) {
  auto bytes = emit_cards(std::vector{mac(), mac("rdma_en3")});
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(parse_cards(std::span(bytes).first(length))) << length;
  }
  bytes.push_back(std::byte{0});
  EXPECT_FALSE(parse_cards(bytes));
}

TEST(PortCard, is_refused_when_any_bit_has_changed) {
  auto bytes = emit_cards(std::vector{mac(), mac("rdma_en3")});
  for (size_t i = 0; i < bytes.size() * 8; ++i) {
    bytes[i / 8] ^= static_cast<std::byte>(1U << (i % 8));
    EXPECT_FALSE(parse_cards(bytes)) << "bit " << i;
    bytes[i / 8] ^= static_cast<std::byte>(1U << (i % 8));
  }
  EXPECT_TRUE(parse_cards(bytes));
}

struct Change {
  size_t at;
  uint8_t value;
  const char* says;
};
void PrintTo(const Change& change, std::ostream* out) {
  *out << "byte_" << change.at << "_is_" << unsigned{change.value};
}
class PortCardOfLiar : public testing::TestWithParam<Change> {};

/// Of a peer that computes checksums and lies.
TEST_P(PortCardOfLiar, is_refused_for_what_it_says) {
  auto bytes = emit_cards(std::vector{mac()});
  bytes[GetParam().at] = static_cast<std::byte>(GetParam().value);
  const auto parsed = parse_cards(mended(bytes));
  ASSERT_FALSE(parsed);
  EXPECT_NE(parsed.error().text().find(GetParam().says), std::string::npos) << parsed.error().text();
}

INSTANTIATE_TEST_SUITE_P(Changes, PortCardOfLiar,
                         testing::Values(Change{5, 1, "version 1"}, Change{7, 0, "do not hold 0 ports"},
                                         Change{7, 2, "do not hold 2 ports"}, Change{6, 255, "do not hold"},
                                         Change{12, 0, "do not hold"}, Change{12, 255, "do not hold"},
                                         Change{13, ' ', "odd characters"}, Change{13, 0x80, "odd characters"},
                                         Change{21, 0, "no port 0"}, Change{24, 9, "MTU"}, Change{30, 2, "no GID 2"},
                                         Change{31, 1, "do not hold"}, Change{31, 255, "do not hold"},
                                         Change{32, 1, "out of order"}, Change{33, 4, "unknown type"},
                                         Change{68, 0x16, "unknown capability"}),
                         testing::PrintToStringParamName());

TEST(PortCardOfLiar, is_refused_when_a_port_is_there_twice) {
  auto bytes = emit_cards(std::vector{mac("rdma_en2"), mac("rdma_en3")});
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  bytes[text.find("rdma_en3") + 7] = std::byte{'2'};
  const auto parsed = parse_cards(mended(bytes));
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().text(), "port cards: port 1 of rdma_en2 is there twice");
}

TEST(PortCard, asserts_that_it_is_possible) {
  PortCard impossible = mac();
  impossible.gids.clear();
  EXPECT_DEATH(emit_cards(std::vector{impossible}), "broken promise");
  EXPECT_DEATH(emit_cards(std::vector<PortCard>{mac(), mac()}), "broken promise");
}

}  // namespace
}  // namespace ringbolt::bringup
