// What profiles (docs/profiles.md) make of a send queue.

#include "device/send_quirks.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cerrno>

#include "device/send_quirks_test_support.h"

namespace ringbolt::device {
namespace {

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
  EXPECT_TRUE(progress_and_poll().empty());        // none overtakes the first
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

}  // namespace
}  // namespace ringbolt::device
