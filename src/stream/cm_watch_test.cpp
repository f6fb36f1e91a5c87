#include "stream/cm_watch.h"

#include <gtest/gtest.h>

namespace ringbolt::stream {
namespace {

constexpr uint64_t kStart = 7'000'000'000;
constexpr uint64_t kPace = CmWatch::kPaceNs;

TEST(CmWatch, looks_always_while_its_word_is_waited_for) {
  CmWatch watch(0);
  EXPECT_TRUE(watch.is_look_due(kStart, true, false));
  EXPECT_TRUE(watch.is_look_due(kStart, true, false));
  EXPECT_TRUE(watch.is_look_due(kStart + 1, true, true));
}

TEST(CmWatch, looks_now_and_then_while_nothing_comes) {
  CmWatch watch(0);
  EXPECT_TRUE(watch.is_look_due(kStart, false, true));
  EXPECT_FALSE(watch.is_look_due(kStart + kPace - 1, false, true));
  EXPECT_TRUE(watch.is_look_due(kStart + kPace, false, true));
  EXPECT_FALSE(watch.is_look_due(kStart + 2 * kPace - 1, false, true)) << "from the last look on";
}

TEST(CmWatch, does_not_look_while_data_comes) {
  CmWatch watch(0);
  EXPECT_FALSE(watch.is_look_due(kStart, false, false));
  EXPECT_FALSE(watch.is_look_due(kStart + 100 * kPace, false, false));
  EXPECT_TRUE(watch.is_look_due(kStart + 100 * kPace, false, true)) << "what was no look does not count";
}

TEST(CmWatch, looks_soon_where_it_is_told_to) {
  CmWatch watch(0);
  ASSERT_TRUE(watch.is_look_due(kStart, false, true));
  watch.look_soon();
  EXPECT_TRUE(watch.is_look_due(kStart + 1, false, true));
}

TEST(CmWatch, gives_opening_its_time) {
  const CmWatch watch(kStart);
  EXPECT_EQ(watch.opening_until_ns(), kStart);
  EXPECT_FALSE(watch.has_opening_timed_out(kStart - 1));
  EXPECT_TRUE(watch.has_opening_timed_out(kStart));
}

TEST(CmWatch, waits_a_second_for_why_requests_were_flushed) {
  CmWatch watch(0);
  EXPECT_FALSE(watch.is_broken_for_good(kStart));
  EXPECT_FALSE(watch.is_broken_for_good(kStart + 999'999'999));
  EXPECT_TRUE(watch.is_broken_for_good(kStart + 1'000'000'000)) << "since the first look that saw it";
}

}  // namespace
}  // namespace ringbolt::stream
