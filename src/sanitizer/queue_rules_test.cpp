#include "sanitizer/queue_rules.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "sanitizer/parts_test_support.h"

namespace ringbolt::sanitizer {
namespace {

using testing::Pair;
using testing::rule_of;
using testing::site;

TEST(QueueRules, a_send_queue_is_full_at_its_depth_and_runs_over_beyond) {
  Pair pair(2);
  pair.qp.sends.post(1, true);
  EXPECT_EQ(rule_of(find_send_queue_overrun(pair.qp, site(1))), "nothing");
  pair.qp.sends.post(2, false);
  EXPECT_EQ(rule_of(find_send_queue_overrun(pair.qp, site(1))), "nothing") << "full, and no more";
  pair.qp.sends.post(3, false);
  const auto found = find_send_queue_overrun(pair.qp, site(1));
  ASSERT_EQ(rule_of(found), "send-queue-overrun");
  EXPECT_EQ(found->numbers, "queue pair 0x5: 3 requests without a polled completion behind them, max_send_wr is 2");
  EXPECT_EQ(found->places[0].site.returns[0], 1U);
}

TEST(QueueRules, a_send_queue_whose_first_have_no_completion_never_drains) {
  Pair pair(2);
  for (const uint32_t number : {1U, 2U}) {
    pair.qp.sends.post(number, false);
  }
  EXPECT_EQ(rule_of(find_refused_send(pair.qp, ENOMEM, site(1))), "send-queue-never-drains");
  EXPECT_EQ(rule_of(find_refused_send(pair.qp, EINVAL, site(1))), "nothing") << "refused for something else";
  pair.qp.sends.post(3, true);
  EXPECT_EQ(rule_of(find_send_queue_overrun(pair.qp, site(1))), "send-queue-never-drains")
      << "a card never takes the third, which has a completion";
  Pair other(2);
  other.qp.sends.post(1, true);
  other.qp.sends.post(2, false);
  EXPECT_EQ(rule_of(find_refused_send(other.qp, ENOMEM, site(1))), "nothing") << "polling makes room";
  Pair half(2);
  half.qp.sends.post(1, false);
  EXPECT_EQ(rule_of(find_refused_send(half.qp, ENOMEM, site(1))), "nothing") << "the device lacks memory";
}

TEST(QueueRules, a_completion_queue_takes_as_many_as_it_has_entries) {
  Pair pair(4, 3);
  for (int i = 0; i < 3; ++i) {
    pair.cq.expect();
  }
  EXPECT_EQ(rule_of(find_completion_queue_overrun(&pair.cq, 0, 5, site(1))), "nothing");
  const auto shared = find_completion_queue_overrun(&pair.cq, 1, 5, site(1));
  ASSERT_EQ(rule_of(shared), "completion-queue-overrun");
  EXPECT_EQ(shared->numbers, "4 requests under way complete to the queue of 3 entries that queue pair 0x5 has");
  EXPECT_EQ(shared->places[1].site.returns[0], 0xc0U) << "where it was made";
  pair.cq.expect();
  EXPECT_EQ(rule_of(find_completion_queue_overrun(&pair.cq, 0, 5, site(1))), "completion-queue-overrun");
  pair.cq.resize(4);
  EXPECT_EQ(rule_of(find_completion_queue_overrun(&pair.cq, 0, 5, site(1))), "nothing");
  pair.cq.resize(3);
  pair.cq.settle();
  EXPECT_EQ(rule_of(find_completion_queue_overrun(&pair.cq, 0, 5, site(1))), "nothing");
  EXPECT_EQ(rule_of(find_completion_queue_overrun(nullptr, 100, 5, site(1))), "nothing") << "of none that is known";
}

TEST(QueueRules, posts_after_a_failure_name_where_it_was_polled) {
  Pair pair;
  EXPECT_EQ(rule_of(find_post_after_failure(pair.qp, "sends", site(1))), "nothing");
  pair.qp.note_outcome(IBV_WC_RETRY_EXC_ERR, site(9));
  const auto found = find_post_after_failure(pair.qp, "receives", site(1));
  ASSERT_EQ(rule_of(found), "posted-after-failure");
  EXPECT_EQ(found->numbers, "receives on queue pair 0x5: a completion with status 12 was polled before");
  EXPECT_EQ(found->places[1].site.returns[0], 9U);
}

TEST(QueueRules, a_wake_up_is_lost_where_nobody_polls_between_arming_and_sleep) {
  // InfiniBand Architecture Specification 1.4, 11.4.2.2: a request says nothing of what is in the queue already.
  ibv_comp_channel channel{};
  ibv_comp_channel other{};
  CompletionQueue queue(4, &channel, site(1));
  EXPECT_EQ(rule_of(find_lost_wake_up(queue, channel, site(2))), "nothing") << "never armed";
  queue.arm(site(3), false);
  EXPECT_EQ(rule_of(find_lost_wake_up(queue, channel, site(2))), "nothing") << "nothing was awaited";
  queue.arm(site(4), true);
  EXPECT_EQ(rule_of(find_lost_wake_up(queue, other, site(2))), "nothing");
  const auto found = find_lost_wake_up(queue, channel, site(2));
  ASSERT_EQ(rule_of(found), "wake-up-lost");
  EXPECT_EQ(found->places[0].site.returns[0], 2U);
  EXPECT_EQ(found->places[1].site.returns[0], 4U);
  queue.note_poll();
  EXPECT_EQ(rule_of(find_lost_wake_up(queue, channel, site(2))), "nothing");
  EXPECT_FALSE(CompletionQueue(4, nullptr, site(1)).may_miss_event_of(channel));
}

TEST(QueueRules, unacknowledged_events_are_counted) {
  const Finding found = events_unacknowledged("ibv_destroy_cq", 3, site(1));
  EXPECT_EQ(found.rule, "events-unacknowledged");
  EXPECT_NE(found.numbers.find("ibv_destroy_cq has waited a second for 3 events"), std::string::npos);
}

}  // namespace
}  // namespace ringbolt::sanitizer
