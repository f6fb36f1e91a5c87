#include "link/messages.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "link/rendezvous.h"

namespace ringbolt::link {
namespace {

std::vector<std::byte> emitted(const Message& message) {
  std::array<std::byte, kMaxMessageBytes> out{};
  const size_t length = emit(message, out);
  return {out.begin(), out.begin() + static_cast<ptrdiff_t>(length)};
}

std::vector<std::byte> from_hex(const std::string& hex) {
  std::vector<std::byte> bytes;
  std::string digits;
  for (const char c : hex) {
    if (c != ' ') {
      digits.push_back(c);
    }
    if (digits.size() == 2) {
      bytes.push_back(static_cast<std::byte>(std::stoul(digits, nullptr, 16)));
      digits.clear();
    }
  }
  return bytes;
}

std::array<uint8_t, 16> counting_gid(uint8_t first) {
  std::array<uint8_t, 16> gid{};
  for (uint8_t i = 0; i < gid.size(); ++i) {
    gid[i] = static_cast<uint8_t>(first + i);
  }
  return gid;
}

struct Golden {
  Message message;
  std::string hex;
  size_t descriptors;
};

// The bytes are those of docs/formats/rendezvous.md, written down by hand.
std::vector<Golden> golden_messages() {
  return {
      {Hello{0x2a1, 0x1122334455667788, 0x7ffd00112233, 0xa1a2a3a4a5a6a7a8},
       "52424c4b 0300 0100 30000000 00000000  a1020000 00000000 8877665544332211 33221100fd7f0000 a8a7a6a5a4a3a2a1", 3},
      {Offer{0x00a2a4a6, 0x00b1b3b5, 2, 0xc1c2c3c4, 0x0102030405060708, counting_gid(0x10), counting_gid(0x80),
             {0xd1d2, 0x01e2e3e4}, {0xd3d4, 0x01e6e7e8}, 0x2122, 0xf1f2f3f4, 0xf5f6f7f8},
       "52424c4b 0300 0200 68000000 00000000  a6a4a200 b5b3b100 02000000 c4c3c2c1 0807060504030201"
       "101112131415161718191a1b1c1d1e1f 808182838485868788898a8b8c8d8e8f"
       "d2d10000 e4e3e201 d4d30000 e8e7e601 22210000 f4f3f2f1 f8f7f6f5 00000000",
       3},
      {Withdraw{0x123456, 0x654321, 0x0807060504030201},
       "52424c4b 0300 0300 20000000 00000000  56341200 21436500 0102030405060708", 0},
      {Arena{7, 0x0000000140000000}, "52424c4b 0300 0400 20000000 00000000  07000000 00000000 0000004001000000", 1},
      {Release{0x00001c07}, "52424c4b 0300 0600 18000000 00000000  071c0000 00000000", 0},
      {Refuse{0x123456, 0x654321, 0x0807060504030201, 12},
       "52424c4b 0300 0700 28000000 00000000  56341200 21436500 0102030405060708 0c000000 00000000", 0},
      {Bye{}, "52424c4b 0300 0500 10000000 00000000", 0},
      {Poke{}, "52 42 50 4f 4b 45 31 0a", 0},
  };
}

TEST(Messages, emit_and_parse_golden_bytes) {
  for (const Golden& golden : golden_messages()) {
    const std::vector<std::byte> bytes = from_hex(golden.hex);
    EXPECT_EQ(emitted(golden.message), bytes) << "kind " << golden.message.index();
    EXPECT_EQ(parse(bytes), golden.message) << "kind " << golden.message.index();
    EXPECT_EQ(descriptor_count(golden.message), golden.descriptors);
  }
}

TEST(Messages, refuse_every_other_length) {
  for (const Golden& golden : golden_messages()) {
    std::vector<std::byte> bytes = from_hex(golden.hex);
    for (size_t length = 0; length < bytes.size(); ++length) {
      EXPECT_FALSE(parse(std::span(bytes).first(length))) << "kind " << golden.message.index() << " cut to " << length;
    }
    bytes.push_back(std::byte{0});
    EXPECT_FALSE(parse(bytes)) << "kind " << golden.message.index() << " with a byte too many";
  }
}

TEST(Messages, refuse_a_length_field_that_lies) {
  for (const Golden& golden : golden_messages()) {
    std::vector<std::byte> bytes = from_hex(golden.hex);
    if (bytes.size() >= 16) {
      bytes[8] = static_cast<std::byte>(std::to_integer<int>(bytes[8]) + 1);
      EXPECT_FALSE(parse(bytes));
    }
  }
}

TEST(Messages, refuse_a_change_of_any_header_bit) {
  constexpr size_t kHeaderBytes = 16;
  for (const Golden& golden : golden_messages()) {
    const std::vector<std::byte> bytes = from_hex(golden.hex);
    for (size_t bit = 0; bit < std::min(bytes.size(), kHeaderBytes) * 8; ++bit) {
      std::vector<std::byte> changed = bytes;
      changed[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
      // A changed kind may name another message of the same length; every other bit must match.
      const auto parsed = parse(changed);
      EXPECT_TRUE(!parsed || parsed->index() != golden.message.index()) << "bit " << bit;
    }
  }
}

TEST(Messages, refuse_reserved_bits_and_a_slot_out_of_range) {
  const std::vector<Golden> golden = golden_messages();
  struct Reserved {
    size_t message, first;
  };
  for (const auto& [which, first] : {Reserved{0, 20}, Reserved{1, 100}, Reserved{3, 20}, Reserved{4, 20}, Reserved{5, 36}}) {
    for (size_t at = first; at < first + 4; ++at) {
      std::vector<std::byte> bytes = from_hex(golden[which].hex);
      bytes[at] = std::byte{1};
      EXPECT_FALSE(parse(bytes)) << "byte " << at;
    }
  }
  std::vector<std::byte> bytes = emitted(Hello{kSlotCount - 1, 1, 2, 3});
  EXPECT_TRUE(parse(bytes));
  bytes[16] = std::byte{0x00};
  bytes[17] = std::byte{0x04};  // 1024
  EXPECT_FALSE(parse(bytes));
}

TEST(Messages, refuse_an_offer_with_places_that_no_table_has) {
  Offer offer;
  offer.receive_queue.index = offer.send_queue.index = kWakeQueues - 1;
  offer.mark = kMarks - 1;
  EXPECT_TRUE(parse(emitted(offer)));
  for (uint32_t* const place : {&offer.receive_queue.index, &offer.send_queue.index, &offer.mark}) {
    ++*place;
    EXPECT_FALSE(parse(emitted(offer)));
    --*place;
  }
}

TEST(Messages, offers_bring_a_descriptor_for_each_channel) {
  Offer offer;
  EXPECT_EQ(descriptor_count(offer), 1U);
  offer.send_channel = 4;
  EXPECT_EQ(descriptor_count(offer), 2U);
  offer.receive_channel = 4;
  EXPECT_EQ(descriptor_count(offer), 2U) << "it is one channel";
  offer.receive_channel = 5;
  EXPECT_EQ(descriptor_count(offer), 3U);
}

RC_GTEST_PROP(Messages, come_back_as_they_went, ()) {
  Offer offer;
  offer.source_qpn = *rc::gen::arbitrary<uint32_t>();
  offer.target_qpn = *rc::gen::arbitrary<uint32_t>();
  offer.qp_type = *rc::gen::arbitrary<uint32_t>();
  offer.pd_key = *rc::gen::arbitrary<uint32_t>();
  offer.nonce = *rc::gen::arbitrary<uint64_t>();
  offer.source_gid = *rc::gen::arbitrary<std::array<uint8_t, 16>>();
  offer.target_gid = *rc::gen::arbitrary<std::array<uint8_t, 16>>();
  offer.receive_queue = {*rc::gen::inRange<uint32_t>(0, kWakeQueues), *rc::gen::arbitrary<uint32_t>()};
  offer.send_queue = {*rc::gen::inRange<uint32_t>(0, kWakeQueues), *rc::gen::arbitrary<uint32_t>()};
  offer.mark = *rc::gen::inRange<uint32_t>(0, kMarks);
  offer.receive_channel = *rc::gen::arbitrary<uint32_t>();
  offer.send_channel = *rc::gen::arbitrary<uint32_t>();
  RC_ASSERT(parse(emitted(offer)) == std::optional<Message>(offer));

  Hello hello;
  hello.slot = *rc::gen::inRange<uint32_t>(0, kSlotCount);
  hello.incarnation = *rc::gen::arbitrary<uint64_t>();
  hello.nonce_address = *rc::gen::arbitrary<uint64_t>();
  hello.nonce = *rc::gen::arbitrary<uint64_t>();
  RC_ASSERT(parse(emitted(hello)) == std::optional<Message>(hello));

  const Withdraw withdraw{*rc::gen::arbitrary<uint32_t>(), *rc::gen::arbitrary<uint32_t>(),
                          *rc::gen::arbitrary<uint64_t>()};
  RC_ASSERT(parse(emitted(withdraw)) == std::optional<Message>(withdraw));

  const Arena arena{*rc::gen::arbitrary<uint32_t>(), *rc::gen::arbitrary<uint64_t>()};
  RC_ASSERT(parse(emitted(arena)) == std::optional<Message>(arena));

  const Release release{*rc::gen::arbitrary<uint32_t>()};
  RC_ASSERT(parse(emitted(release)) == std::optional<Message>(release));

  const Refuse refuse{*rc::gen::arbitrary<uint32_t>(), *rc::gen::arbitrary<uint32_t>(), *rc::gen::arbitrary<uint64_t>(),
                      *rc::gen::arbitrary<uint32_t>()};
  RC_ASSERT(parse(emitted(refuse)) == std::optional<Message>(refuse));
}

// What parse() accepts has one form only: nothing can hide in bits that emit() would not write.
RC_GTEST_PROP(Messages, have_one_form, ()) {
  const std::vector<Golden> golden = golden_messages();
  std::vector<std::byte> bytes = from_hex(golden[*rc::gen::inRange<size_t>(0, golden.size())].hex);
  const size_t changes = *rc::gen::inRange<size_t>(0, 8);
  for (size_t i = 0; i < changes; ++i) {
    bytes[*rc::gen::inRange<size_t>(0, bytes.size())] = static_cast<std::byte>(*rc::gen::arbitrary<uint8_t>());
  }
  if (const auto message = parse(bytes)) {
    RC_ASSERT(emitted(*message) == bytes);
  }
}

}  // namespace
}  // namespace ringbolt::link
