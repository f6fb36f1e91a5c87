#include "perf/message.h"

#include <gtest/gtest.h>

#include <vector>

namespace ringbolt::tools::perf {
namespace {

constexpr uint32_t kSeed = 0xabcd0123;
constexpr uint64_t kSequence = 77;
constexpr uint32_t kSlot = 5;

std::vector<std::byte> message_of(size_t size, uint64_t sequence = kSequence, uint32_t slot = kSlot) {
  std::vector<std::byte> message(size);
  fill_slot(message, kSeed, slot);
  write_stamp(message, stamp_of(kSeed, sequence));
  return message;
}

TEST(Message, is_intact_in_every_size) {
  for (size_t size = 1; size < 400; ++size) {
    const auto message = message_of(size);
    for (const Check check : {Check::kFull, Check::kSample, Check::kNone}) {
      EXPECT_FALSE(find_damage(message, kSeed, kSequence, kSlot, check)) << size;
    }
    EXPECT_TRUE(has_stamp(message, stamp_of(kSeed, kSequence))) << size;
  }
}

TEST(Message, every_damaged_byte_is_found) {
  for (const size_t size : {1U, 2U, 7U, 8U, 9U, 15U, 16U, 17U, 63U, 64U, 1000U}) {
    for (size_t at = 0; at < size; ++at) {
      auto message = message_of(size);
      message[at] ^= std::byte{0x40};
      EXPECT_TRUE(find_damage(message, kSeed, kSequence, kSlot, Check::kFull)) << size << " " << at;
      EXPECT_FALSE(find_damage(message, kSeed, kSequence, kSlot, Check::kNone)) << size << " " << at;
    }
  }
}

TEST(Message, sample_looks_at_both_ends) {
  auto message = message_of(4096);
  message[2000] ^= std::byte{1};
  EXPECT_FALSE(find_damage(message, kSeed, kSequence, kSlot, Check::kSample));
  EXPECT_EQ(find_damage(message, kSeed, kSequence, kSlot, Check::kFull), 2000U);
  message = message_of(4096);
  message[4095] ^= std::byte{1};
  EXPECT_TRUE(find_damage(message, kSeed, kSequence, kSlot, Check::kSample));
}

TEST(Message, those_of_other_slots_seeds_and_numbers_do_not_pass) {
  for (const size_t size : {8U, 24U, 4096U}) {
    EXPECT_TRUE(find_damage(message_of(size), kSeed + 1, kSequence, kSlot, Check::kFull)) << size;
    EXPECT_TRUE(find_damage(message_of(size), kSeed, kSequence + 1, kSlot, Check::kFull)) << size;
  }
  EXPECT_TRUE(find_damage(message_of(24), kSeed, kSequence, kSlot + 1, Check::kFull));
}

TEST(Message, half_of_a_newer_message_does_not_pass) {
  const auto old_one = message_of(256, 1, 1);
  auto newer = message_of(256, 2, 2);
  std::copy(old_one.begin() + 128, old_one.end(), newer.begin() + 128);
  EXPECT_FALSE(has_stamp(newer, stamp_of(kSeed, 2)));
  EXPECT_TRUE(find_damage(newer, kSeed, 2, 2, Check::kFull));
}

TEST(Message, number_is_read_near_the_expected_one) {
  for (const uint64_t expected : {uint64_t{0}, uint64_t{100}, uint64_t{0xffff'ffff}, uint64_t{1} << 40U}) {
    for (const size_t size : {1U, 2U, 3U, 4U, 8U, 64U}) {
      for (const uint64_t ahead : {0U, 1U, 100U}) {
        EXPECT_EQ(sequence_in(message_of(size, expected + ahead), expected), expected + ahead) << size;
      }
    }
  }
  EXPECT_EQ(sequence_in(message_of(8, 5), 7), 5U);
}

}  // namespace
}  // namespace ringbolt::tools::perf
