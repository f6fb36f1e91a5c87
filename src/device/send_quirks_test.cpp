// What profiles (docs/profiles.md) and faults (docs/faults.md) make of a send queue. Faults are counted from the first
// request on, so that each test knows whom they hit.

#include "device/send_quirks.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cerrno>

#include "device/part_test_support.h"

namespace ringbolt::device {
namespace {

/// A send queue with quirks over a transport of the test's.
class SendQuirksTest : public testing::Test {
 protected:
  static constexpr uint32_t kFrame = 4096;

  /// `depth`: in requests, or in frames where the profile counts those.
  void begin(const std::string& like, const std::string& faults, ibv_qp_type type, uint32_t depth = 4,
             bool signals_all = true) {
    queue_.reset();
    own_.reset();
    data_.reset();
    device_.reset();  // it leaves the environment as it was, for the next one
    device_ = std::make_unique<DeviceUnderTest>(like, faults);
    data_ = std::make_unique<Memory>(device_->pd(), 16 * kFrame, IBV_ACCESS_LOCAL_WRITE);
    data_->fill(1);
    own_ = std::make_unique<CoreUnderTest>(*device_, type);
    queue_ = std::make_unique<SendQueue>(own_->core, SendQueue::Limits{depth, 4, 32, signals_all},
                                         SendQuirks::slots(own_->core, depth), SendQuirks::create(own_->core));
  }
  QueuePairCore& core() { return own_->core; }
  FakeTransport& transport() { return own_->transport; }
  Ends progress_and_poll() {
    {
      const base::LockGuard guard(own_->sends->lock);
      queue_->progress(*own_->sends);
    }
    return ends_of(poll_all(*own_->sends));
  }
  int post(ibv_send_wr wr) {
    bad_ = nullptr;
    return queue_->post(&wr, &bad_);
  }
  int send(uint64_t id, size_t length = 8, unsigned flags = 0) {
    ibv_sge piece = data_->piece(0, length);
    return post(End::request(IBV_WR_SEND, id, &piece, flags));
  }
  std::string bytes(size_t length) { return {reinterpret_cast<const char*>(data_->data()), length}; }
  /// Polls until something is there.
  Ends await() {
    const uint64_t deadline = base::now_ns() + 20'000'000'000;
    Ends ends = progress_and_poll();
    while (ends.empty() && base::now_ns() < deadline) {
      ends = progress_and_poll();
    }
    return ends;
  }

  std::unique_ptr<DeviceUnderTest> device_;
  std::unique_ptr<Memory> data_;
  std::unique_ptr<CoreUnderTest> own_;
  std::unique_ptr<SendQueue> queue_;
  ibv_send_wr* bad_ = nullptr;
};

// --- Which device has quirks at all.

TEST_F(SendQuirksTest, plain_device_has_none) {
  begin("", "", IBV_QPT_RC, 5);
  EXPECT_FALSE(SendQuirks::are_needed(core()));
  EXPECT_EQ(SendQuirks::create(core()), nullptr);
  EXPECT_EQ(queue_->slots(), 8U);
  EXPECT_EQ(queue_->early(), nullptr);
}

TEST_F(SendQuirksTest, profile_that_takes_nothing_away_has_none) {
  begin("spark", "", IBV_QPT_RC);
  EXPECT_FALSE(SendQuirks::are_needed(core()));
}

TEST_F(SendQuirksTest, faults_need_some_and_no_more_slots) {
  begin("", "message-loss count 0-0", IBV_QPT_RC);
  EXPECT_TRUE(SendQuirks::are_needed(core()));
  EXPECT_EQ(queue_->slots(), 4U);
}

TEST_F(SendQuirksTest, early_completions_have_slots_of_their_own) {
  begin("tn3205", "", IBV_QPT_UC);
  EXPECT_NE(queue_->early(), nullptr);
  EXPECT_GT(queue_->slots(), 8192U);
  EXPECT_TRUE(std::has_single_bit(queue_->slots()));
}

TEST_F(SendQuirksTest, datagrams_never_complete_early) {
  begin("roce,early-cqe=on", "", IBV_QPT_UD);
  EXPECT_EQ(queue_->early(), nullptr);
  EXPECT_EQ(queue_->slots(), 4U);
}

// --- Rules of a profile.

TEST_F(SendQuirksTest, mac_has_no_operation_but_send) {
  begin("tn3205", "", IBV_QPT_UC);
  ibv_sge piece = data_->piece(0, 8);
  for (const auto opcode : {IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_RDMA_READ}) {
    EXPECT_EQ(post(End::request(opcode, 1, &piece)), EOPNOTSUPP) << opcode;
    EXPECT_NE(bad_, nullptr) << opcode;
  }
  EXPECT_EQ(send(1), 0);
}

TEST_F(SendQuirksTest, mac_refuses_with_darwins_numbers_if_asked) {
  constexpr int kDarwinNotSupported = 102;
  begin("tn3205,errno=darwin", "", IBV_QPT_UC);
  ibv_sge piece = data_->piece(0, 8);
  EXPECT_EQ(post(End::request(IBV_WR_RDMA_WRITE, 1, &piece)), kDarwinNotSupported);
}

TEST_F(SendQuirksTest, mac_has_no_inline_data) {
  begin("tn3205", "", IBV_QPT_UC);
  EXPECT_EQ(send(1, 8, IBV_SEND_INLINE), EINVAL);
  EXPECT_EQ(send(1, 8), 0);
}

TEST_F(SendQuirksTest, write_of_apple_enters_the_peers_receive_queue) {
  begin("apple", "", IBV_QPT_UC, 32);
  ibv_sge piece = data_->piece(0, 8);
  ibv_send_wr wr = End::request(IBV_WR_RDMA_WRITE, 1, &piece);
  ASSERT_EQ(post(wr), 0);
  ASSERT_EQ(transport().submitted.size(), 1U);
  EXPECT_EQ(transport().submitted[0].request.opcode, IBV_WR_SEND);
  {
    const base::LockGuard guard(own_->sends->lock);
    queue_->progress(*own_->sends);
  }
  const auto all = poll_all(*own_->sends);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].opcode, IBV_WC_RDMA_WRITE);  // the program's own word
}

TEST_F(SendQuirksTest, empty_send_may_be_refused) {
  begin("tn3205,empty-send=emsgsize", "", IBV_QPT_UC);
  EXPECT_EQ(send(1, 0), EMSGSIZE);
  EXPECT_EQ(post(End::request(IBV_WR_SEND, 1, nullptr)), EMSGSIZE);
  EXPECT_EQ(send(1, 1), 0);
}

TEST_F(SendQuirksTest, message_longer_than_the_profile_allows_is_refused) {
  begin("usb4-linux", "", IBV_QPT_RC);
  transport().room = 0;  // nobody reads what is not there
  ibv_sge piece = data_->piece(0, 8);
  piece.length = (16U << 20U) + 1;
  EXPECT_EQ(post(End::request(IBV_WR_SEND, 1, &piece)), EINVAL);
  piece.length -= 1;
  EXPECT_EQ(post(End::request(IBV_WR_SEND, 1, &piece, IBV_SEND_SIGNALED)), 0);
}

// --- Depths in frames. The observed driver returns a negated number and leaves the pointer alone.

constexpr const char* kFrames = "tn3205,early-cqe=off";

TEST_F(SendQuirksTest, depth_is_counted_in_frames) {
  begin(kFrames, "", IBV_QPT_UC, 4);
  transport().completes_all = false;
  ASSERT_EQ(send(1, 2 * kFrame + 1), 0);  // three frames
  ASSERT_EQ(send(2, kFrame + 1), -ENOMEM);
  EXPECT_EQ(bad_, nullptr);
  ASSERT_EQ(send(2, kFrame), 0);
  ASSERT_EQ(send(3, 0), -ENOMEM);  // one without a byte needs a frame, too
  transport().complete = {1};
  EXPECT_EQ(progress_and_poll(), (Ends{{1, IBV_WC_SUCCESS}}));
  EXPECT_EQ(send(3, 3 * kFrame), 0);
  EXPECT_EQ(send(4, 0), -ENOMEM);
}

TEST_F(SendQuirksTest, message_that_no_queue_of_this_depth_holds_is_refused) {
  begin(kFrames, "", IBV_QPT_UC, 4);
  EXPECT_EQ(send(1, 4 * kFrame + 1), -ENOMEM);
  EXPECT_EQ(bad_, nullptr);
  EXPECT_EQ(send(1, 4 * kFrame), 0);
}

TEST_F(SendQuirksTest, apple_takes_sixteen_frames_fewer_than_it_granted) {
  begin("apple,early-cqe=off,rate=free", "", IBV_QPT_UC, 18);
  transport().completes_all = false;
  EXPECT_EQ(send(1, 2 * kFrame + 1), -ENOMEM);
  EXPECT_EQ(send(1, kFrame), 0);
  EXPECT_EQ(send(2, 0), 0);
  EXPECT_EQ(send(3, 0), -ENOMEM);
}

TEST_F(SendQuirksTest, overrun_of_frames_may_be_accepted) {
  begin("tn3205,early-cqe=off,overrun=silent", "", IBV_QPT_UC, 4);
  transport().completes_all = false;
  EXPECT_EQ(send(1, 4 * kFrame), 0);
  EXPECT_EQ(send(2, 4 * kFrame), 0);
  EXPECT_EQ(send(3, 4 * kFrame + 1), -ENOMEM);  // no message is longer than the depth all the same
}

TEST_F(SendQuirksTest, whole_list_that_exceeds_the_frames_leaves_nothing_behind) {
  begin(kFrames, "", IBV_QPT_UC, 4);
  ibv_sge piece = data_->piece(0, 2 * kFrame);
  std::array<ibv_send_wr, 3> list;
  for (size_t i = 0; i < list.size(); ++i) {
    list[i] = End::request(IBV_WR_SEND, i, &piece);
    list[i].next = i + 1 < list.size() ? &list[i + 1] : nullptr;
  }
  EXPECT_EQ(queue_->post(list.data(), nullptr), -ENOMEM);
  EXPECT_TRUE(transport().submitted.empty());
  EXPECT_EQ(core().sends.unfinished(), 0U);
  EXPECT_EQ(send(7, 4 * kFrame), 0);  // their frames are free
  EXPECT_EQ(progress_and_poll(), (Ends{{7, IBV_WC_SUCCESS}}));
}

TEST_F(SendQuirksTest, list_is_posted_up_to_the_one_that_exceeds_the_frames) {
  begin(kFrames, "", IBV_QPT_UC, 4);
  ibv_sge piece = data_->piece(0, 3 * kFrame);
  std::array<ibv_send_wr, 2> list{End::request(IBV_WR_SEND, 1, &piece), End::request(IBV_WR_SEND, 2, &piece)};
  list[0].next = &list[1];
  EXPECT_EQ(queue_->post(list.data(), &bad_), -ENOMEM);
  EXPECT_EQ(bad_, nullptr);
  EXPECT_EQ(transport().ids(), std::vector<uint64_t>{1});
}

// --- Pieces that become messages.

constexpr const char* kParted = "tn3205,early-cqe=off,multi-sge=accept";

TEST_F(SendQuirksTest, each_piece_may_be_a_message_with_a_completion_of_its_own) {
  begin(kParted, "", IBV_QPT_UC, 4);
  std::array<ibv_sge, 3> pieces{data_->piece(0, 4), data_->piece(8, 5), data_->piece(100, 0)};
  ibv_send_wr wr = End::request(IBV_WR_SEND, 9, pieces.data());
  wr.num_sge = 3;
  ASSERT_EQ(post(wr), 0);
  ASSERT_EQ(transport().submitted.size(), 3U);
  EXPECT_EQ(transport().submitted[0].bytes, bytes(4));
  EXPECT_EQ(transport().submitted[1].bytes, bytes(13).substr(8));
  EXPECT_EQ(transport().submitted[2].bytes, "");
  EXPECT_EQ(progress_and_poll(), (Ends{{9, IBV_WC_SUCCESS}, {9, IBV_WC_SUCCESS}, {9, IBV_WC_SUCCESS}}));
}

TEST_F(SendQuirksTest, pieces_find_room_all_or_none) {
  begin(kParted, "", IBV_QPT_UC, 4);
  transport().completes_all = false;
  ASSERT_EQ(send(1), 0);
  ASSERT_EQ(send(2), 0);
  std::array<ibv_sge, 3> pieces{data_->piece(0, 4), data_->piece(8, 4), data_->piece(16, 4)};
  ibv_send_wr wr = End::request(IBV_WR_SEND, 3, pieces.data());
  wr.num_sge = 3;
  EXPECT_NE(post(wr), 0);
  EXPECT_EQ(core().sends.unfinished(), 2U);
  wr.num_sge = 2;
  EXPECT_EQ(post(wr), 0);
  EXPECT_EQ(core().sends.unfinished(), 4U);
}

TEST_F(SendQuirksTest, pieces_cost_frames_of_their_own) {
  begin(kParted, "", IBV_QPT_UC, 3);
  std::array<ibv_sge, 2> pieces{data_->piece(0, 1), data_->piece(8, 1)};
  ibv_send_wr wr = End::request(IBV_WR_SEND, 1, pieces.data());
  wr.num_sge = 2;
  transport().completes_all = false;
  ASSERT_EQ(send(0, 2 * kFrame), 0);
  EXPECT_EQ(post(wr), -ENOMEM);
  transport().completes_all = true;
  progress_and_poll();
  EXPECT_EQ(post(wr), 0);
}

// --- Sends that complete before they are delivered.

TEST_F(SendQuirksTest, mac_tells_completions_before_anything_left) {
  begin("tn3205", "", IBV_QPT_UC, 4);
  transport().room = 0;
  ASSERT_EQ(send(1), 0);
  ASSERT_EQ(send(2), 0);
  EXPECT_EQ(progress_and_poll(), (Ends{{1, IBV_WC_SUCCESS}, {2, IBV_WC_SUCCESS}}));
  EXPECT_TRUE(transport().submitted.empty());
  EXPECT_EQ(core().sends.unfinished(), 2U);
  transport().room = 2;
  EXPECT_TRUE(progress_and_poll().empty());  // each is told once
  EXPECT_EQ(core().sends.unfinished(), 0U);
  EXPECT_EQ(transport().ids(), (std::vector<uint64_t>{1, 2}));
}

TEST_F(SendQuirksTest, memory_is_the_programs_again_after_an_early_completion) {
  begin("tn3205", "", IBV_QPT_UC, 4);
  transport().room = 0;
  const std::string before = bytes(100);
  ASSERT_EQ(send(1, 100), 0);
  ASSERT_EQ(progress_and_poll(), (Ends{{1, IBV_WC_SUCCESS}}));
  data_->fill(77);
  ASSERT_NE(bytes(100), before);
  transport().room = 1;
  progress_and_poll();
  ASSERT_EQ(transport().submitted.size(), 1U);
  EXPECT_EQ(transport().submitted[0].bytes, before);
}

TEST_F(SendQuirksTest, depth_is_free_again_after_an_early_completion) {
  begin("tn3205", "", IBV_QPT_UC, 2);
  transport().room = 0;
  for (uint64_t id = 0; id < 20; ++id) {
    ASSERT_EQ(send(id, kFrame), 0) << id;
    ASSERT_EQ(progress_and_poll(), (Ends{{id, IBV_WC_SUCCESS}})) << id;
  }
  EXPECT_EQ(send(20, 2 * kFrame), 0);
  EXPECT_EQ(send(21, 1), -ENOMEM);  // nobody has polled since
}

TEST_F(SendQuirksTest, unsignaled_send_completes_early_in_silence) {
  begin("tn3205", "", IBV_QPT_UC, 2, false);
  transport().room = 0;
  ASSERT_EQ(send(1), 0);
  ASSERT_EQ(send(2, 8, IBV_SEND_SIGNALED), 0);
  EXPECT_EQ(progress_and_poll(), (Ends{{2, IBV_WC_SUCCESS}}));
}

TEST_F(SendQuirksTest, send_with_a_wrong_key_fails_and_is_not_told_early) {
  begin("tn3205", "", IBV_QPT_UC, 4);
  transport().room = 0;
  ibv_sge piece = data_->piece(0, 8);
  piece.lkey ^= 0x100;
  ASSERT_EQ(post(End::request(IBV_WR_SEND, 1, &piece)), 0);
  EXPECT_TRUE(progress_and_poll().empty());
  ASSERT_EQ(send(2), 0);
  EXPECT_TRUE(progress_and_poll().empty());  // none overtakes the first
  transport().fails = {{1, IBV_WC_LOC_PROT_ERR}};  // as any transport finds out
  EXPECT_EQ(progress_and_poll(), (Ends{{1, IBV_WC_LOC_PROT_ERR}, {2, IBV_WC_WR_FLUSH_ERR}}));
}

TEST_F(SendQuirksTest, what_was_told_early_is_not_flushed_a_second_time) {
  begin("roce,early-cqe=on", "", IBV_QPT_RC, 4);
  transport().room = 0;
  ASSERT_EQ(send(1), 0);
  ASSERT_EQ(progress_and_poll(), (Ends{{1, IBV_WC_SUCCESS}}));
  ASSERT_EQ(send(2), 0);
  {
    const SendGuard guard(core().locks);
    core().enter_error(IBV_WC_RETRY_EXC_ERR);
  }
  const Ends ends = progress_and_poll();
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_EQ(ends[0].first, 2U);
  EXPECT_NE(ends[0].second, IBV_WC_SUCCESS);
  EXPECT_EQ(counter(*device_, "port_xmit_discards"), 1U);  // the first never left
}

TEST_F(SendQuirksTest, read_completes_when_its_data_is_there) {
  begin("roce,early-cqe=on", "", IBV_QPT_RC, 4);
  transport().completes_all = false;
  ibv_sge piece = data_->piece(0, 8);
  ASSERT_EQ(post(End::request(IBV_WR_RDMA_READ, 1, &piece)), 0);
  ASSERT_EQ(send(2), 0);
  EXPECT_TRUE(progress_and_poll().empty());
  transport().complete = {1};
  EXPECT_EQ(progress_and_poll(), (Ends{{1, IBV_WC_SUCCESS}}));
}

TEST_F(SendQuirksTest, early_completion_leads_delivery_by_the_time_that_was_asked_for) {
  constexpr uint64_t kLeadNs = 20'000'000;
  begin("tn3205,early-cqe=20000us", "", IBV_QPT_UC, 4);
  const uint64_t began = base::now_ns();
  ASSERT_EQ(send(1), 0);
  EXPECT_EQ(progress_and_poll(), (Ends{{1, IBV_WC_SUCCESS}}));
  while (transport().submitted.empty() && base::now_ns() < began + 20'000'000'000) {
    queue_->advance();
  }
  EXPECT_EQ(transport().ids(), std::vector<uint64_t>{1});
  EXPECT_GE(base::now_ns() - began, kLeadNs);
}

TEST_F(SendQuirksTest, undelivered_messages_are_counted_at_the_end) {
  begin("tn3205", "", IBV_QPT_UC, 4);
  transport().room = 0;
  transport().its_delivery = QueuePairTransport::Delivery::stuck;
  ASSERT_EQ(send(1, 2 * kFrame), 0);
  ASSERT_EQ(progress_and_poll(), (Ends{{1, IBV_WC_SUCCESS}}));
  queue_->early()->settle_told(*queue_, "a test ended", base::now_ns() + 1'000'000'000);
  EXPECT_EQ(counter(*device_, "port_xmit_discards"), 2U);  // packets of the path MTU
}

TEST_F(SendQuirksTest, what_was_told_leaves_before_the_end) {
  begin("tn3205", "", IBV_QPT_UC, 4);
  transport().room = 0;
  ASSERT_EQ(send(1), 0);
  ASSERT_EQ(progress_and_poll(), (Ends{{1, IBV_WC_SUCCESS}}));
  transport().room = 1;
  queue_->early()->settle_told(*queue_, "a test ended", base::now_ns() + 1'000'000'000);
  EXPECT_EQ(transport().ids(), std::vector<uint64_t>{1});
  EXPECT_EQ(counter(*device_, "port_xmit_discards"), 0U);
}

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
