// What faults (docs/faults.md) make of a send queue. They are counted from the first request on, so that each test
// knows whom they hit.

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cerrno>

#include "device/send_quirks_test_support.h"

namespace ringbolt::device {
namespace {

// --- Faults of messages.

TEST_F(SendQuirksTest, lost_message_of_uc_is_complete_and_never_leaves) {
  begin("", "message-loss count 1-1", IBV_QPT_UC);
  for (uint64_t id = 0; id < 3; ++id) {
    ASSERT_EQ(send(id), 0);
  }
  EXPECT_EQ(transport().ids(), (std::vector<uint64_t>{0, 2}));
  EXPECT_EQ(progress_and_poll(), (Ends{{0, IBV_WC_SUCCESS}, {1, IBV_WC_SUCCESS}, {2, IBV_WC_SUCCESS}}));
}

TEST_F(SendQuirksTest, lost_message_of_rc_without_retries_fails) {
  begin("", "message-loss count 1-1", IBV_QPT_RC);
  core().attributes.retry_cnt = 0;
  for (uint64_t id = 0; id < 3; ++id) {
    ASSERT_EQ(send(id), 0);
  }
  EXPECT_EQ(transport().ids(), std::vector<uint64_t>{0});
  EXPECT_EQ(progress_and_poll(), (Ends{{0, IBV_WC_SUCCESS}, {1, IBV_WC_RETRY_EXC_ERR}, {2, IBV_WC_WR_FLUSH_ERR}}));
}

TEST_F(SendQuirksTest, rc_waits_for_an_acknowledgement_before_it_sends_again) {
  begin("", "message-loss count 0-0", IBV_QPT_RC);
  core().attributes.retry_cnt = 7;
  core().attributes.timeout = 1;
  const uint64_t began = base::now_ns();
  ASSERT_EQ(send(0), 0);
  ASSERT_TRUE(transport().submitted.empty());
  ASSERT_EQ(await(), (Ends{{0, IBV_WC_SUCCESS}}));
  EXPECT_EQ(transport().ids(), std::vector<uint64_t>{0});
  EXPECT_GE(base::now_ns() - began, kLeastTimeoutNs / 8);  // the least time, shared by eight tries
}

TEST_F(SendQuirksTest, lost_message_of_rc_holds_up_those_behind_it) {
  begin("", "message-loss count 0-0", IBV_QPT_RC);
  core().attributes.retry_cnt = 7;
  core().attributes.timeout = 1;
  ASSERT_EQ(send(0), 0);
  ASSERT_EQ(send(1), 0);
  EXPECT_TRUE(transport().submitted.empty());
  await();
  EXPECT_EQ(transport().ids(), (std::vector<uint64_t>{0, 1}));
}

TEST_F(SendQuirksTest, rc_sends_again_one_rnr_timer_later) {
  constexpr uint64_t kTimerNs = 20'000'000;
  begin("", "rnr count 0-0", IBV_QPT_RC);
  core().attributes.rnr_retry = 1;
  transport().rnr_us = kTimerNs / 1000;
  const uint64_t began = base::now_ns();
  ASSERT_EQ(send(0), 0);
  ASSERT_EQ(await(), (Ends{{0, IBV_WC_SUCCESS}}));
  EXPECT_GE(base::now_ns() - began, kTimerNs);
}

TEST_F(SendQuirksTest, receiver_that_is_never_ready_ends_rc_after_its_retries) {
  constexpr uint64_t kTimerNs = 1'000'000;
  begin("", "rnr", IBV_QPT_RC);
  core().attributes.rnr_retry = 2;
  transport().rnr_us = kTimerNs / 1000;
  const uint64_t began = base::now_ns();
  ASSERT_EQ(send(0), 0);
  ASSERT_EQ(await(), (Ends{{0, IBV_WC_RNR_RETRY_EXC_ERR}}));
  EXPECT_GE(base::now_ns() - began, 2 * kTimerNs);
  EXPECT_TRUE(transport().submitted.empty());
}

TEST_F(SendQuirksTest, receiver_that_is_never_ready_is_tried_for_ever_with_seven_retries) {
  begin("", "rnr", IBV_QPT_RC);
  core().attributes.rnr_retry = 7;
  transport().rnr_us = 0;
  ASSERT_EQ(send(0), 0);
  for (int tries = 0; tries < 100; ++tries) {
    ASSERT_TRUE(progress_and_poll().empty());
  }
  EXPECT_EQ(core().state(), IBV_QPS_RTS);
}

TEST_F(SendQuirksTest, uc_knows_of_no_receiver_that_is_not_ready) {
  begin("", "rnr count 0-0", IBV_QPT_UC);
  ASSERT_EQ(send(0), 0);
  ASSERT_EQ(send(1), 0);
  EXPECT_EQ(progress_and_poll(), (Ends{{0, IBV_WC_SUCCESS}, {1, IBV_WC_SUCCESS}}));
  EXPECT_EQ(transport().ids(), std::vector<uint64_t>{1});
}

TEST_F(SendQuirksTest, receiver_that_is_not_ready_concerns_only_what_takes_a_receive) {
  begin("", "rnr count 0-9", IBV_QPT_RC);
  core().attributes.rnr_retry = 0;
  ibv_sge piece = data_->piece(0, 8);
  ASSERT_EQ(post(End::request(IBV_WR_RDMA_WRITE, 1, &piece)), 0);
  ASSERT_EQ(progress_and_poll(), (Ends{{1, IBV_WC_SUCCESS}}));
  ASSERT_EQ(post(End::request(IBV_WR_RDMA_WRITE_WITH_IMM, 2, &piece)), 0);
  EXPECT_EQ(progress_and_poll(), (Ends{{2, IBV_WC_RNR_RETRY_EXC_ERR}}));
}

TEST_F(SendQuirksTest, turned_bits_are_in_the_message_and_not_in_the_programs_memory) {
  begin("", "bitflip count 1-1 bits 3", IBV_QPT_RC);
  const std::string before = bytes(256);
  for (uint64_t id = 0; id < 3; ++id) {
    ASSERT_EQ(send(id, 256), 0);
  }
  ASSERT_EQ(transport().submitted.size(), 3U);
  EXPECT_EQ(transport().submitted[0].bytes, before);
  EXPECT_EQ(transport().submitted[2].bytes, before);
  EXPECT_EQ(bytes(256), before);
  int turned = 0;
  for (size_t i = 0; i < before.size(); ++i) {
    turned += std::popcount(static_cast<uint8_t>(before[i] ^ transport().submitted[1].bytes[i]));
  }
  EXPECT_EQ(turned, 3);
}

TEST_F(SendQuirksTest, message_of_a_long_cable_leaves_later_and_holds_up_those_behind_it) {
  constexpr uint64_t kDelayNs = 20'000'000;
  begin("", "shape by 20ms", IBV_QPT_UC);
  const uint64_t began = base::now_ns();
  ASSERT_EQ(send(0), 0);
  ASSERT_EQ(send(1), 0);
  EXPECT_TRUE(transport().submitted.empty());
  ASSERT_FALSE(await().empty());
  EXPECT_GE(base::now_ns() - began, kDelayNs);
}

TEST_F(SendQuirksTest, fault_may_have_sends_complete_early) {
  begin("", "completion-early", IBV_QPT_RC);
  ASSERT_NE(queue_->early(), nullptr);
  transport().room = 0;
  ASSERT_EQ(send(0), 0);
  EXPECT_EQ(progress_and_poll(), (Ends{{0, IBV_WC_SUCCESS}}));
}

// --- Faults of completions.

TEST_F(SendQuirksTest, completion_may_have_any_status_and_rc_ends_with_it) {
  begin("", "completion-error status 10 count 1-1", IBV_QPT_RC);
  for (uint64_t id = 0; id < 3; ++id) {
    ASSERT_EQ(send(id), 0);
  }
  EXPECT_EQ(progress_and_poll().front(), (std::pair<uint64_t, ibv_wc_status>{0, IBV_WC_SUCCESS}));
  EXPECT_EQ(transport().ids().size(), 3U);  // the messages left: only the completion lies
  EXPECT_EQ(core().state(), IBV_QPS_ERR);
}

TEST_F(SendQuirksTest, failed_completion_is_told_of_an_unsignaled_send_too) {
  begin("", "completion-error status 10 count 0-0", IBV_QPT_UC, 4, false);
  ASSERT_EQ(send(0), 0);
  EXPECT_EQ(progress_and_poll(), (Ends{{0, IBV_WC_REM_ACCESS_ERR}}));
  EXPECT_EQ(core().state(), IBV_QPS_SQE);
}

TEST_F(SendQuirksTest, missing_completion_gives_its_slot_back) {
  begin("", "completion-missing count 0-2", IBV_QPT_RC, 2);
  for (uint64_t id = 0; id < 5; ++id) {
    ASSERT_EQ(send(id), 0) << id;
    EXPECT_EQ(progress_and_poll(), id < 3 ? Ends{} : (Ends{{id, IBV_WC_SUCCESS}})) << id;
  }
  EXPECT_EQ(transport().submitted.size(), 5U);
}

TEST_F(SendQuirksTest, late_completion_holds_up_those_behind_it) {
  constexpr uint64_t kLateNs = 20'000'000;
  begin("", "completion-late by 20ms count 0-0", IBV_QPT_RC);
  const uint64_t began = base::now_ns();
  ASSERT_EQ(send(0), 0);
  ASSERT_EQ(send(1), 0);
  EXPECT_EQ(await().front(), (std::pair<uint64_t, ibv_wc_status>{0, IBV_WC_SUCCESS}));
  EXPECT_GE(base::now_ns() - began, kLateNs);
}

// --- Faults of calls.

TEST_F(SendQuirksTest, refused_call_names_the_request_and_posts_those_before_it) {
  begin("", "call-errno call post-send errno EAGAIN count 1-1", IBV_QPT_RC);
  ibv_sge piece = data_->piece(0, 8);
  std::array<ibv_send_wr, 3> list;
  for (size_t i = 0; i < list.size(); ++i) {
    list[i] = End::request(IBV_WR_SEND, i, &piece);
    list[i].next = i + 1 < list.size() ? &list[i + 1] : nullptr;
  }
  EXPECT_EQ(queue_->post(list.data(), &bad_), EAGAIN);
  EXPECT_EQ(bad_, &list[1]);
  EXPECT_EQ(transport().ids(), std::vector<uint64_t>{0});
  EXPECT_EQ(queue_->post(&list[1], &bad_), 0);  // nothing is broken besides
  EXPECT_EQ(transport().ids(), (std::vector<uint64_t>{0, 1, 2}));
}

TEST_F(SendQuirksTest, refused_call_takes_the_whole_list_with_it) {
  begin("", "call-errno call post-send errno EIO count 1-1", IBV_QPT_RC);
  ibv_sge piece = data_->piece(0, 8);
  std::array<ibv_send_wr, 2> list{End::request(IBV_WR_SEND, 0, &piece), End::request(IBV_WR_SEND, 1, &piece)};
  list[0].next = &list[1];
  EXPECT_EQ(queue_->post(list.data(), nullptr), EIO);
  EXPECT_TRUE(transport().submitted.empty());
  EXPECT_EQ(queue_->post(list.data(), nullptr), 0);
  EXPECT_EQ(transport().submitted.size(), 2U);
}

// --- A plain queue that learns of faults later.

TEST_F(SendQuirksTest, quirks_that_come_later_leave_sends_of_before_as_they_are) {
  begin("", "", IBV_QPT_RC);
  transport().completes_all = false;
  ASSERT_EQ(send(0), 0);
  {
    const SendGuard guard(core().locks);
    queue_->add_quirks();
    EXPECT_NE(queue_->quirks(), nullptr);
  }
  EXPECT_EQ(queue_->early(), nullptr);
  ASSERT_EQ(send(1), 0);
  transport().completes_all = true;
  EXPECT_EQ(progress_and_poll(), (Ends{{0, IBV_WC_SUCCESS}, {1, IBV_WC_SUCCESS}}));
}

TEST_F(SendQuirksTest, reset_gives_frames_and_told_completions_back) {
  begin("tn3205", "", IBV_QPT_UC, 4);
  transport().room = 0;
  for (int life = 0; life < 3; ++life) {
    ASSERT_EQ(send(1, 4 * kFrame), 0) << life;
    ASSERT_EQ(send(2, 1), -ENOMEM) << life;
    const SendGuard guard(core().locks);
    queue_->reset();
  }
  ASSERT_EQ(send(3, kFrame), 0);
  EXPECT_EQ(progress_and_poll(), (Ends{{3, IBV_WC_SUCCESS}}));
}

}  // namespace
}  // namespace ringbolt::device
