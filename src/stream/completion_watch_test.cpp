#include "stream/completion_watch.h"

#include <gtest/gtest.h>

namespace ringbolt::stream {
namespace {

TEST(CompletionWatch, looks_around_at_every_sixteenth_idle_look) {
  CompletionWatch watch;
  for (int round = 0; round < 3; ++round) {
    for (int look = 1; look < 16; ++look) {
      watch.looked(false);
      EXPECT_FALSE(watch.is_time_to_look_around()) << look;
      EXPECT_EQ(watch.is_first_idle(), look == 1) << look;
    }
    watch.looked(false);
    EXPECT_TRUE(watch.is_time_to_look_around());
  }
}

TEST(CompletionWatch, counts_idle_looks_anew_after_one_that_found_something) {
  CompletionWatch watch;
  for (int look = 0; look < 15; ++look) {
    watch.looked(false);
  }
  watch.looked(true);
  EXPECT_FALSE(watch.is_time_to_look_around()) << "there is data to see to";
  EXPECT_FALSE(watch.was_idle());
  watch.looked(false);
  EXPECT_TRUE(watch.is_first_idle());
  EXPECT_TRUE(watch.was_idle());
  EXPECT_FALSE(watch.is_time_to_look_around());
}

TEST(CompletionWatch, begins_idle_and_not_armed) {
  const CompletionWatch watch;
  EXPECT_TRUE(watch.was_idle());
  EXPECT_FALSE(watch.is_armed());
  EXPECT_FALSE(watch.may_have_event());
}

TEST(CompletionWatch, is_not_armed_where_the_device_refuses) {
  CompletionWatch watch;
  watch.arm(false);
  EXPECT_FALSE(watch.is_armed());
  watch.arm(true);
  EXPECT_TRUE(watch.is_armed());
}

/// While the looks find something, what they find is what the event would be for; the call that reads it need not look.
TEST(CompletionWatch, that_finds_all_it_was_armed_for_has_an_event) {
  CompletionWatch watch;
  watch.looked(true);
  watch.arm(true);
  EXPECT_FALSE(watch.may_have_event()) << "nothing has come since";
  watch.looked(true);
  EXPECT_TRUE(watch.may_have_event());
  watch.looked(true);
  EXPECT_TRUE(watch.may_have_event()) << "it was not taken";
  watch.looked_for_event(true);
  EXPECT_FALSE(watch.is_armed()) << "the event was the one it was armed for";
  EXPECT_FALSE(watch.may_have_event());
}

TEST(CompletionWatch, that_found_no_event_stays_armed_and_does_not_look_again_at_once) {
  CompletionWatch watch;
  watch.arm(true);
  watch.looked(true);
  watch.looked_for_event(false);
  EXPECT_TRUE(watch.is_armed());
  EXPECT_FALSE(watch.may_have_event());
}

/// Something may come just then: an idle stream that is armed looks for its event.
TEST(CompletionWatch, that_is_idle_may_have_an_event) {
  CompletionWatch watch;
  watch.arm(true);
  watch.looked(false);
  EXPECT_TRUE(watch.may_have_event());
}

TEST(CompletionWatch, that_finds_something_while_arming_may_have_an_event_only_if_that_went) {
  CompletionWatch watch;
  watch.looked(true);
  watch.arm(false);
  watch.found_while_arming();
  EXPECT_FALSE(watch.may_have_event());
  watch.arm(true);
  watch.found_while_arming();
  EXPECT_TRUE(watch.may_have_event());
}

TEST(CompletionWatch, whose_event_was_taken_is_armed_no_more) {
  CompletionWatch watch;
  watch.arm(true);
  watch.took_event();
  EXPECT_FALSE(watch.is_armed());
  watch.looked(true);
  EXPECT_FALSE(watch.may_have_event());
}

}  // namespace
}  // namespace ringbolt::stream
