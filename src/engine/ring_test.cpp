#include "engine/ring.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <vector>

namespace ringbolt::engine {
namespace {

std::vector<int> all(const Ring<int>& ring) {
  std::vector<int> found;
  for (const int one : ring) {
    found.push_back(one);
  }
  return found;
}

TEST(Ring, is_a_queue_however_often_it_goes_round_or_grows) {
  Ring<int> ring;
  std::deque<int> wanted;
  std::mt19937 random(7);
  EXPECT_TRUE(ring.empty());
  for (int i = 0; i < 5000; ++i) {
    const bool adds = random() % 100 < (i < 2000 ? 60U : 45U);
    if (adds) {
      EXPECT_EQ(ring.emplace_back(), 0);  // whatever was there
      ring[ring.size() - 1] = i;
      wanted.push_back(i);
    } else if (!wanted.empty()) {
      EXPECT_EQ(ring.front(), wanted.front());
      ring.pop_front();
      wanted.pop_front();
    }
    ASSERT_EQ(ring.size(), wanted.size());
  }
  EXPECT_EQ(all(ring), std::vector<int>(wanted.begin(), wanted.end()));
  ring.clear();
  EXPECT_TRUE(ring.empty());
  EXPECT_TRUE(all(ring).empty());
  ring.emplace_back() = 3;
  EXPECT_EQ(all(ring), std::vector<int>{3});
}

TEST(Ring, what_is_appended_is_the_last_whatever_it_holds) {
  Ring<int> ring;
  for (int i = 0; i < 100; ++i) {  // grows, and goes round
    ring.append() = i;
    if (i % 3 == 2) {
      ring.pop_front();
    }
    EXPECT_EQ(ring[ring.size() - 1], i);
    EXPECT_EQ(ring.front(), (i + 1) / 3);
  }
}

TEST(Ring, what_it_holds_may_be_changed_in_place) {
  Ring<int> ring;
  for (int i = 0; i < 16; ++i) {  // as many as fit without growing
    ring.emplace_back() = i;
  }
  for (int& one : ring) {
    one *= 2;
  }
  ring.emplace_back() = 32;
  for (size_t i = 0; i < ring.size(); ++i) {
    EXPECT_EQ(ring[i], 2 * static_cast<int>(i));
  }
}

}  // namespace
}  // namespace ringbolt::engine
