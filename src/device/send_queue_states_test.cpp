// What becomes of sends in each state of their queue pair: InfiniBand Architecture Specification 1.4, 10.3.1.

#include <gtest/gtest.h>

#include <cerrno>

#include "device/address_handle.h"
#include "device/send_queue_test_support.h"

namespace ringbolt::device {
namespace {

TEST_F(SendQueueTest, refuses_sends_before_rts) {
  begin();
  for (const ibv_qp_state state : {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR}) {
    core().set_state(state);
    EXPECT_EQ(send(1), EINVAL) << state;
    EXPECT_EQ(queue_->post(sends_from<1>(1).data(), nullptr), EINVAL) << state;
  }
  EXPECT_EQ(core().sends.unfinished(), 0U);
}

TEST_F(SendQueueTest, drained_queue_takes_sends_and_begins_them_with_rts) {
  begin();
  enter(IBV_QPS_SQD);
  ASSERT_EQ(send(1), 0);
  ASSERT_EQ(send(2), 0);
  EXPECT_TRUE(progress_and_poll().empty());
  EXPECT_TRUE(transport().submitted.empty());
  enter(IBV_QPS_RTS);
  EXPECT_EQ(transport().ids(), (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(progress_and_poll(), (Ends{{1, IBV_WC_SUCCESS}, {2, IBV_WC_SUCCESS}}));
}

TEST_F(SendQueueTest, drained_queue_completes_what_had_begun) {
  begin();
  transport().completes_all = false;
  ASSERT_EQ(send(1), 0);
  enter(IBV_QPS_SQD);
  ASSERT_EQ(send(2), 0);
  transport().completes_all = true;
  EXPECT_EQ(progress_and_poll(), (Ends{{1, IBV_WC_SUCCESS}}));
  EXPECT_EQ(transport().ids(), (std::vector<uint64_t>{1}));
}

TEST_F(SendQueueTest, error_state_flushes_all_and_the_first_with_the_status_that_led_there) {
  begin();
  transport().completes_all = false;
  transport().room = 2;
  ASSERT_EQ(send(1, 0), 0);
  ASSERT_EQ(send(2), 0);
  ASSERT_EQ(send(3, 0), 0);  // never executed
  enter_error(IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(transport().closes, 1);
  EXPECT_EQ(progress_and_poll(), (Ends{{1, IBV_WC_RETRY_EXC_ERR}, {2, IBV_WC_WR_FLUSH_ERR}, {3, IBV_WC_WR_FLUSH_ERR}}));
  EXPECT_GE(transport().flushes, 1);
  EXPECT_EQ(transport().ids(), (std::vector<uint64_t>{1, 2}));
}

TEST_F(SendQueueTest, error_state_tells_first_what_was_complete_before) {
  begin();
  transport().completes_all = false;
  ASSERT_EQ(send(1), 0);
  ASSERT_EQ(send(2), 0);
  transport().complete = {1};
  enter_error(IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(progress_and_poll(), (Ends{{1, IBV_WC_SUCCESS}, {2, IBV_WC_RETRY_EXC_ERR}}));
}

TEST_F(SendQueueTest, sends_posted_in_the_error_state_are_flushed) {
  begin();
  enter_error(IBV_WC_WR_FLUSH_ERR);
  ASSERT_EQ(send(1, 0), 0);
  ASSERT_EQ(send(2, 0), 0);
  EXPECT_EQ(progress_and_poll(), (Ends{{1, IBV_WC_WR_FLUSH_ERR}, {2, IBV_WC_WR_FLUSH_ERR}}));
  EXPECT_TRUE(transport().submitted.empty());
}

TEST_F(SendQueueTest, entering_the_error_state_twice_keeps_the_first_status) {
  begin();
  transport().completes_all = false;
  ASSERT_EQ(send(1), 0);
  enter_error(IBV_WC_RNR_RETRY_EXC_ERR);
  enter_error(IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(transport().closes, 1);
  EXPECT_EQ(progress_and_poll(), (Ends{{1, IBV_WC_RNR_RETRY_EXC_ERR}}));
}

TEST_F(SendQueueTest, transport_that_gives_up_ends_the_oldest_with_its_status) {
  begin();
  transport().completes_all = false;
  ASSERT_EQ(send(1), 0);
  ASSERT_EQ(send(2), 0);
  transport().complete = {1};
  transport().gives_up_with = IBV_WC_REM_ACCESS_ERR;
  EXPECT_EQ(progress_and_poll(), (Ends{{1, IBV_WC_SUCCESS}, {2, IBV_WC_REM_ACCESS_ERR}}));
  EXPECT_EQ(core().state(), IBV_QPS_ERR);
}

TEST_F(SendQueueTest, queue_pair_without_a_transport_flushes_in_error) {
  begin();
  core().transport.store(nullptr);
  enter_error(IBV_WC_WR_FLUSH_ERR);
  ASSERT_EQ(send(1), 0);
  EXPECT_EQ(progress_and_poll(), (Ends{{1, IBV_WC_WR_FLUSH_ERR}}));
}

TEST_F(SendQueueTest, failed_send_of_rc_ends_the_queue_pair_and_what_is_behind_it) {
  begin();
  transport().fails = {{2, IBV_WC_LOC_PROT_ERR}};
  ASSERT_EQ(send(1), 0);
  ASSERT_EQ(send(2, 0), 0);
  ASSERT_EQ(send(3), 0);
  EXPECT_EQ(transport().ids(), (std::vector<uint64_t>{1}));  // the third must not begin
  EXPECT_EQ(progress_and_poll(), (Ends{{1, IBV_WC_SUCCESS}, {2, IBV_WC_LOC_PROT_ERR}, {3, IBV_WC_WR_FLUSH_ERR}}));
  EXPECT_EQ(core().state(), IBV_QPS_ERR);
  EXPECT_EQ(own_->handle.state, IBV_QPS_ERR);
}

/// 10.3.1.6: in the state SQE, which UC and UD know alone, receives go on, and sends are flushed.
class SendQueueErrorTest : public SendQueueTest, public testing::WithParamInterface<ibv_qp_type> {
 protected:
  int send_any(uint64_t id, unsigned flags = IBV_SEND_SIGNALED) {
    ibv_send_wr wr = End::request(IBV_WR_SEND, id, &piece_, flags);
    wr.wr.ud = {&target_.c, 5, 6};
    return post(wr);
  }
  AddressHandle target_;
};
INSTANTIATE_TEST_SUITE_P(Types, SendQueueErrorTest, testing::Values(IBV_QPT_UC, IBV_QPT_UD),
                         [](const auto& type) { return type.param == IBV_QPT_UC ? "UC" : "UD"; });

TEST_P(SendQueueErrorTest, failed_send_leads_to_sqe_and_flushes_what_is_behind_it) {
  begin(GetParam());
  transport().fails = {{2, IBV_WC_LOC_LEN_ERR}};
  ASSERT_EQ(send_any(1), 0);
  ASSERT_EQ(send_any(2, 0), 0);
  ASSERT_EQ(send_any(3, 0), 0);
  EXPECT_EQ(progress_and_poll(), (Ends{{1, IBV_WC_SUCCESS}, {2, IBV_WC_LOC_LEN_ERR}, {3, IBV_WC_WR_FLUSH_ERR}}));
  EXPECT_EQ(core().state(), IBV_QPS_SQE);
  EXPECT_EQ(transport().closes, 0);
  ASSERT_EQ(send_any(4, 0), 0);
  EXPECT_EQ(progress_and_poll(), (Ends{{4, IBV_WC_WR_FLUSH_ERR}}));
}

TEST_P(SendQueueErrorTest, goes_on_after_sqe_with_rts) {
  begin(GetParam());
  transport().fails = {{1, IBV_WC_LOC_PROT_ERR}};
  ASSERT_EQ(send_any(1), 0);
  ASSERT_EQ(progress_and_poll(), (Ends{{1, IBV_WC_LOC_PROT_ERR}}));
  enter(IBV_QPS_RTS);
  ASSERT_EQ(send_any(2), 0);
  EXPECT_EQ(transport().ids(), (std::vector<uint64_t>{2}));
  EXPECT_EQ(progress_and_poll(), (Ends{{2, IBV_WC_SUCCESS}}));
}

TEST_F(SendQueueTest, send_that_fails_when_it_would_be_complete_flushes_the_rest) {
  begin();
  transport().fails_late = {{1, IBV_WC_LOC_PROT_ERR}};
  transport().completes_all = false;
  ASSERT_EQ(send(1), 0);
  ASSERT_EQ(send(2), 0);
  transport().complete = {1};
  EXPECT_EQ(progress_and_poll(), (Ends{{1, IBV_WC_LOC_PROT_ERR}, {2, IBV_WC_WR_FLUSH_ERR}}));
}

TEST_F(SendQueueTest, errors_carry_the_vendors_code) {
  begin();
  transport().completes_all = false;
  ASSERT_EQ(send(1), 0);
  ASSERT_EQ(send(2), 0);
  enter_error(IBV_WC_RETRY_EXC_ERR);
  progress();
  const auto all = poll_all(*own_->sends);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].vendor_err, 0x81U);
  EXPECT_EQ(all[1].vendor_err, 0xf9U);
}

TEST_F(SendQueueTest, completes_no_more_than_the_completion_queue_has_room_for) {
  begin(IBV_QPT_RC, kLimits, 4, 2);
  for (uint64_t id = 1; id <= 4; ++id) {
    ASSERT_EQ(send(id), 0);
  }
  progress();
  EXPECT_EQ(core().sends.unfinished(), 2U);
  EXPECT_EQ(send(5), 0);
  EXPECT_EQ(ends_of(poll_all(*own_->sends)), (Ends{{1, IBV_WC_SUCCESS}, {2, IBV_WC_SUCCESS}}));
  EXPECT_EQ(progress_and_poll(), (Ends{{3, IBV_WC_SUCCESS}, {4, IBV_WC_SUCCESS}}));
  EXPECT_EQ(progress_and_poll(), (Ends{{5, IBV_WC_SUCCESS}}));
}

TEST_F(SendQueueTest, flushes_no_more_than_the_completion_queue_has_room_for) {
  begin(IBV_QPT_RC, kLimits, 4, 1);
  transport().completes_all = false;
  ASSERT_EQ(send(1), 0);
  ASSERT_EQ(send(2), 0);
  enter_error(IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(progress_and_poll(), (Ends{{1, IBV_WC_RETRY_EXC_ERR}}));
  EXPECT_EQ(progress_and_poll(), (Ends{{2, IBV_WC_WR_FLUSH_ERR}}));
  EXPECT_TRUE(progress_and_poll().empty());
}

// --- What others ask it.

TEST_F(SendQueueTest, ud_is_always_looked_at_for_sends) {
  begin(IBV_QPT_UD);
  EXPECT_TRUE(queue_->has_awaited());
}

TEST_F(SendQueueTest, nobody_awaits_unsignaled_sends_until_they_fill_the_queue) {
  begin(IBV_QPT_RC, {16, 3, 32, false}, 16);
  EXPECT_FALSE(queue_->has_awaited());
  for (uint64_t id = 1; id <= 7; ++id) {
    ASSERT_EQ(send(id, 0), 0);
    EXPECT_FALSE(queue_->has_awaited()) << id;
  }
  ASSERT_EQ(send(8, 0), 0);
  EXPECT_TRUE(queue_->has_awaited());  // more than half of the slots
  progress();
  EXPECT_FALSE(queue_->has_awaited());
}

TEST_F(SendQueueTest, signaled_send_is_awaited_until_it_is_complete) {
  begin(IBV_QPT_RC, {16, 3, 32, false}, 16);
  ASSERT_EQ(send(1), 0);
  ASSERT_EQ(send(2, 0), 0);
  EXPECT_TRUE(queue_->has_awaited());
  progress();
  EXPECT_FALSE(queue_->has_awaited());
}

TEST_F(SendQueueTest, failed_or_queued_send_is_awaited_signaled_or_not) {
  begin(IBV_QPT_UC, {16, 3, 32, false}, 16);
  transport().room = 0;
  ASSERT_EQ(send(1, 0), 0);
  EXPECT_TRUE(queue_->has_awaited());
  transport().room = 1;
  transport().fails = {{2, IBV_WC_LOC_PROT_ERR}};
  queue_->advance();
  EXPECT_FALSE(queue_->has_awaited());
  ASSERT_EQ(send(2, 0), 0);
  EXPECT_TRUE(queue_->has_awaited());
}

TEST_F(SendQueueTest, untold_completion_is_a_signaled_one_that_is_done) {
  begin();
  const auto has_untold = [this] {
    const SendGuard guard(core().locks);
    return queue_->has_untold_completion();
  };
  EXPECT_FALSE(has_untold());
  transport().completes_all = false;
  ASSERT_EQ(send(1), 0);
  EXPECT_FALSE(has_untold());
  transport().completes_all = true;
  EXPECT_TRUE(has_untold());
  progress();
  EXPECT_FALSE(has_untold());
  ASSERT_EQ(send(2, 0), 0);
  EXPECT_FALSE(has_untold());
}

TEST_F(SendQueueTest, reset_forgets_what_was_posted_and_what_failed) {
  begin();
  transport().fails = {{1, IBV_WC_LOC_PROT_ERR}};
  ASSERT_EQ(send(1), 0);
  ASSERT_EQ(send(2), 0);
  {
    const SendGuard guard(core().locks);
    queue_->reset();
  }
  EXPECT_TRUE(progress_and_poll().empty());
  EXPECT_EQ(core().sends.unfinished(), 0U);
  for (uint64_t id = 3; id <= 6; ++id) {
    ASSERT_EQ(send(id), 0);
  }
  EXPECT_EQ(progress_and_poll().size(), 4U);
}

}  // namespace
}  // namespace ringbolt::device
