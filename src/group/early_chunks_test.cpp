#include "group/early_chunks.h"

#include <gtest/gtest.h>

#include <vector>

namespace ringbolt::group {
namespace {

Early chunk(uint64_t id) { return {{}, {id, {}}}; }

std::vector<uint64_t> ids_of(std::span<const Early> chunks) {
  std::vector<uint64_t> ids;
  for (const Early& one : chunks) {
    ids.push_back(one.receipt.id);
  }
  return ids;
}

constexpr CallId collective_of(uint32_t number, Phase phase = Phase::only) { return {false, 0, 0, number, phase}; }

TEST(EarlyChunks, keeps_them_by_call) {
  EarlyChunks early;
  EXPECT_TRUE(early.empty());
  early.add(collective_of(7), chunk(1));
  early.add(collective_of(8), chunk(2));
  early.add(collective_of(7), chunk(3));
  EXPECT_TRUE(early.has(7));
  EXPECT_FALSE(early.has(9));
  EXPECT_TRUE(early.are_plain());
  EXPECT_EQ(ids_of(early.take(collective_of(7))), (std::vector<uint64_t>{1, 3}));
  EXPECT_FALSE(early.has(7));
  EXPECT_TRUE(early.take(collective_of(7)).empty());
  EXPECT_FALSE(early.empty());
  EXPECT_EQ(ids_of(early.take(collective_of(8))), (std::vector<uint64_t>{2}));
  EXPECT_TRUE(early.empty());
}

TEST(EarlyChunks, phases_and_messages_of_one_number_are_others) {
  EarlyChunks early;
  const CallId message{true, 1, 0, 7};
  early.add(collective_of(7), chunk(1));
  early.add(collective_of(7, Phase::counting), chunk(2));
  early.add(message, chunk(3));
  EXPECT_FALSE(early.are_plain());
  EXPECT_EQ(ids_of(early.take(message)), (std::vector<uint64_t>{3}));
  EXPECT_EQ(ids_of(early.take(collective_of(7, Phase::counting))), (std::vector<uint64_t>{2}));
  EXPECT_TRUE(early.are_plain());
  EXPECT_EQ(ids_of(early.take(collective_of(7))), (std::vector<uint64_t>{1}));
}

TEST(EarlyChunks, numbers_that_meet_in_the_ring_do_not_mix) {
  EarlyChunks early;
  const uint32_t far = 7 + EarlyChunks::kMostAhead;
  early.add(collective_of(7), chunk(1));
  early.add(collective_of(far), chunk(2));  // its place is taken
  EXPECT_TRUE(early.has(7));
  EXPECT_FALSE(early.has(far));
  EXPECT_EQ(ids_of(early.take(collective_of(7))), (std::vector<uint64_t>{1}));
  early.add(collective_of(far), chunk(3));  // and free now
  EXPECT_EQ(ids_of(early.take(collective_of(far))), (std::vector<uint64_t>{3, 2}));
  EXPECT_TRUE(early.empty());
}

TEST(EarlyChunks, all_are_taken_at_once) {
  EarlyChunks early;
  early.add(collective_of(UINT32_MAX), chunk(1));
  early.add(collective_of(0), chunk(2));
  early.add({true, 1, 0, 5}, chunk(3));
  EXPECT_EQ(early.take_all().size(), 3U);
  EXPECT_TRUE(early.empty());
  EXPECT_TRUE(early.take_all().empty());
}

}  // namespace
}  // namespace ringbolt::group
