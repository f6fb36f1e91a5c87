#include "engine/slots.h"

#include <gtest/gtest.h>

#include <set>

namespace ringbolt::engine {
namespace {

TEST(FreeSlots, gives_each_once_until_it_is_given_back) {
  FreeSlots free(3);
  EXPECT_EQ(free.size(), 3U);
  std::set<uint32_t> taken;
  for (int i = 0; i < 3; ++i) {
    taken.insert(free.take());
  }
  EXPECT_EQ(taken, (std::set<uint32_t>{0, 1, 2}));
  EXPECT_TRUE(free.is_empty());
  free.give(1);
  EXPECT_EQ(free.size(), 1U);
  EXPECT_EQ(free.take(), 1U);
}

// As a device might that completes a send twice.
TEST(FreeSlots, one_too_many_that_is_given_back_does_not_count) {
  FreeSlots free(2);
  free.give(0);
  EXPECT_EQ(free.size(), 2U);
  EXPECT_EQ((std::set<uint32_t>{free.take(), free.take()}), (std::set<uint32_t>{0, 1}));
}

}  // namespace
}  // namespace ringbolt::engine
