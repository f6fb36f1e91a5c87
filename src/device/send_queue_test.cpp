// The order of work requests, of their ends, and what is posted: InfiniBand Architecture Specification 1.4, 10.8.3 and
// 11.4.1.1.

#include "device/send_queue.h"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <thread>

#include "device/address_handle.h"
#include "device/send_queue_test_support.h"

namespace ringbolt::device {
namespace {

using Ids = std::vector<uint64_t>;

TEST_F(SendQueueTest, executes_a_list_in_its_order_and_pushes_it_out_once) {
  begin();
  auto list = sends_from<3>(1);
  ibv_send_wr* bad = nullptr;
  ASSERT_EQ(queue_->post(list.data(), &bad), 0);
  EXPECT_EQ(bad, nullptr);
  EXPECT_EQ(transport().ids(), (Ids{1, 2, 3}));
  EXPECT_EQ(transport().submitted[1].bytes, "01234");
  EXPECT_EQ(transport().push_outs, 1);
  EXPECT_EQ(progress_and_poll(), (Ends{{1, IBV_WC_SUCCESS}, {2, IBV_WC_SUCCESS}, {3, IBV_WC_SUCCESS}}));
}

TEST_F(SendQueueTest, empty_list_is_no_error) {
  begin();
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(queue_->post(nullptr, &bad), 0);
  EXPECT_EQ(queue_->post(nullptr, nullptr), 0);
  EXPECT_TRUE(transport().submitted.empty());
  EXPECT_TRUE(progress_and_poll().empty());
}

TEST_F(SendQueueTest, completes_in_the_order_of_posting_whichever_is_done_first) {
  begin();
  transport().completes_all = false;
  ASSERT_EQ(send(1), 0);
  ASSERT_EQ(send(2), 0);
  ASSERT_EQ(send(3), 0);
  transport().complete = {2, 3};
  EXPECT_TRUE(progress_and_poll().empty());
  transport().complete.insert(1);
  EXPECT_EQ(progress_and_poll(), (Ends{{1, IBV_WC_SUCCESS}, {2, IBV_WC_SUCCESS}, {3, IBV_WC_SUCCESS}}));
}

TEST_F(SendQueueTest, unsignaled_send_ends_in_silence_but_gives_its_slot_back) {
  begin();
  for (uint64_t id = 1; id <= 4; ++id) {
    ASSERT_EQ(send(id, id == 4 ? IBV_SEND_SIGNALED : 0), 0);
  }
  ASSERT_EQ(send(5), ENOMEM);
  EXPECT_EQ(progress_and_poll(), (Ends{{4, IBV_WC_SUCCESS}}));
  for (uint64_t id = 5; id <= 8; ++id) {
    EXPECT_EQ(send(id, 0), 0) << id;
  }
}

TEST_F(SendQueueTest, signals_all_tells_of_sends_without_the_flag) {
  begin(IBV_QPT_RC, {4, 3, 32, true});
  ASSERT_EQ(send(1, 0), 0);
  EXPECT_EQ(progress_and_poll(), (Ends{{1, IBV_WC_SUCCESS}}));
}

TEST_F(SendQueueTest, takes_as_many_as_it_is_deep_and_refuses_one_more) {
  begin(IBV_QPT_RC, {3, 3, 32, false});
  transport().completes_all = false;
  for (uint64_t id = 1; id <= 3; ++id) {
    ASSERT_EQ(send(id), 0);
  }
  EXPECT_EQ(send(4), ENOMEM);
  EXPECT_EQ(transport().ids(), (Ids{1, 2, 3}));
  transport().complete = {1};
  EXPECT_EQ(progress_and_poll(), (Ends{{1, IBV_WC_SUCCESS}}));
  EXPECT_EQ(send(4), 0);
  EXPECT_EQ(send(5), ENOMEM);
}

TEST_F(SendQueueTest, depth_of_one_takes_one_at_a_time) {
  begin(IBV_QPT_RC, {1, 1, 0, false}, 1);
  for (uint64_t id = 1; id <= 3; ++id) {
    ASSERT_EQ(send(id), 0);
    ASSERT_EQ(send(99), ENOMEM);
    ASSERT_EQ(progress_and_poll(), (Ends{{id, IBV_WC_SUCCESS}}));
  }
}

TEST_F(SendQueueTest, completed_but_not_polled_counts_as_outstanding_until_progress) {
  begin(IBV_QPT_RC, {1, 1, 0, false}, 1);
  ASSERT_EQ(send(1), 0);
  EXPECT_EQ(send(2), ENOMEM);  // complete already, but nobody has looked
  progress();
  EXPECT_EQ(send(2), 0);
}

TEST_F(SendQueueTest, list_is_posted_up_to_the_bad_request) {
  begin();
  auto list = sends_from<3>(1);
  list[1].num_sge = 4;
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(queue_->post(list.data(), &bad), EINVAL);
  EXPECT_EQ(bad, &list[1]);
  EXPECT_EQ(transport().ids(), (Ids{1}));
  EXPECT_EQ(transport().push_outs, 1);  // what was good leaves all the same
  EXPECT_EQ(progress_and_poll(), (Ends{{1, IBV_WC_SUCCESS}}));
}

TEST_F(SendQueueTest, list_is_posted_up_to_the_one_that_finds_no_room) {
  begin();
  transport().completes_all = false;
  auto list = sends_from<6>(1);
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(queue_->post(list.data(), &bad), ENOMEM);
  EXPECT_EQ(bad, &list[4]);
  EXPECT_EQ(transport().ids(), (Ids{1, 2, 3, 4}));
}

TEST_F(SendQueueTest, whole_list_is_refused_for_its_last_request) {
  begin();
  auto list = sends_from<3>(1);
  list[2].num_sge = -1;
  EXPECT_EQ(queue_->post(list.data(), nullptr), EINVAL);
  EXPECT_TRUE(transport().submitted.empty());
  EXPECT_EQ(core().sends.unfinished(), 0U);
  list[2].num_sge = 1;
  EXPECT_EQ(queue_->post(list.data(), nullptr), 0);
  EXPECT_EQ(transport().ids(), (Ids{1, 2, 3}));
}

TEST_F(SendQueueTest, whole_list_is_refused_if_one_finds_no_room) {
  begin();
  transport().completes_all = false;
  ASSERT_EQ(send(1), 0);
  auto list = sends_from<4>(2);
  EXPECT_EQ(queue_->post(list.data(), nullptr), ENOMEM);
  EXPECT_EQ(transport().ids(), (Ids{1}));
  list[2].next = nullptr;
  EXPECT_EQ(queue_->post(list.data(), nullptr), 0);
  EXPECT_EQ(transport().ids(), (Ids{1, 2, 3, 4}));
}

TEST_F(SendQueueTest, what_nobody_is_told_of_needs_no_room_in_the_completion_queue) {
  constexpr uint32_t kCqe = 1;
  begin(IBV_QPT_RC, kLimits, 4, kCqe);
  transport().finishes = true;
  ASSERT_EQ(send(1), 0);
  for (uint64_t id = 2; id <= 4; ++id) {
    ASSERT_EQ(send(id, 0), 0);
  }
  ASSERT_EQ(send(5, 0), ENOMEM);
  progress();  // the first takes the only place
  for (uint64_t id = 5; id <= 7; ++id) {
    EXPECT_EQ(send(id, 0), 0);
  }
  EXPECT_EQ(ends_of(poll_all(*own_->sends)), (Ends{{1, IBV_WC_SUCCESS}}));
}

TEST_F(SendQueueTest, inline_data_is_the_programs_again_after_the_post) {
  begin();
  transport().room = 0;
  const std::array<ibv_sge, 3> pieces{piece_, ibv_sge{0, 0, 0}, ibv_sge{piece_.addr + 10, 3, 0}};
  ibv_send_wr wr = End::request(IBV_WR_SEND, 1, const_cast<ibv_sge*>(pieces.data()), IBV_SEND_INLINE);
  wr.num_sge = 3;
  ASSERT_EQ(post(wr), 0);
  data_.assign(data_.size(), 'x');
  transport().room = 1;
  progress();
  ASSERT_EQ(transport().submitted.size(), 1U);
  EXPECT_EQ(transport().submitted[0].bytes, "01234abc");
  EXPECT_EQ(transport().submitted[0].request.length, 8U);
  EXPECT_TRUE(transport().submitted[0].request.is_inline);
}

TEST_F(SendQueueTest, inline_data_of_each_slot_is_its_own) {
  begin();
  transport().room = 0;
  for (uint64_t id = 1; id <= 4; ++id) {
    data_.assign(data_.size(), static_cast<char>('a' + id));
    ASSERT_EQ(send(id, IBV_SEND_INLINE), 0);
  }
  transport().room = SIZE_MAX;
  progress();
  ASSERT_EQ(transport().submitted.size(), 4U);
  EXPECT_EQ(transport().submitted[0].bytes, "bbbbb");
  EXPECT_EQ(transport().submitted[3].bytes, "eeeee");
}

TEST_F(SendQueueTest, inline_send_without_a_byte_needs_no_piece) {
  begin();
  transport().room = 0;
  ibv_sge empty{0, 0, 0};
  ASSERT_EQ(post(End::request(IBV_WR_SEND, 1, &empty, IBV_SEND_INLINE)), 0);
  ASSERT_EQ(post(End::request(IBV_WR_SEND, 2, nullptr, IBV_SEND_INLINE)), 0);
  transport().room = 2;
  progress();
  ASSERT_EQ(transport().submitted.size(), 2U);
  EXPECT_TRUE(transport().submitted[0].pieces.empty());
  EXPECT_TRUE(transport().submitted[1].pieces.empty());
}

TEST_F(SendQueueTest, takes_inline_data_up_to_its_limit) {
  begin();
  piece_.length = 32;
  EXPECT_EQ(send(1, IBV_SEND_INLINE), 0);
  piece_.length = 33;
  EXPECT_EQ(send(2, IBV_SEND_INLINE), EINVAL);
  EXPECT_EQ(send(2, 0), 0);
}

TEST_F(SendQueueTest, inline_length_does_not_wrap_around_32_bits) {
  begin();
  std::array<ibv_sge, 2> pieces{ibv_sge{piece_.addr, UINT32_MAX, 0}, ibv_sge{piece_.addr, 5, 0}};
  ibv_send_wr wr = End::request(IBV_WR_SEND, 1, pieces.data(), IBV_SEND_INLINE);
  wr.num_sge = 2;  // 4 bytes modulo 2^32
  EXPECT_EQ(post(wr), EINVAL);
}

TEST_F(SendQueueTest, inline_flag_is_refused_where_the_request_carries_no_data) {
  begin();
  ibv_send_wr wr = End::request(IBV_WR_RDMA_READ, 1, &piece_, IBV_SEND_INLINE);
  for (const auto opcode : {IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD}) {
    wr.opcode = opcode;
    EXPECT_EQ(post(wr), EINVAL) << opcode;
  }
  for (const auto opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND_WITH_IMM}) {
    wr.opcode = opcode;
    EXPECT_EQ(post(wr), 0) << opcode;
  }
}

TEST_F(SendQueueTest, pieces_are_the_programs_again_when_the_transport_has_no_room) {
  begin();
  transport().room = 0;
  std::array<ibv_sge, 3> pieces{ibv_sge{piece_.addr, 1, 7}, ibv_sge{piece_.addr + 3, 2, 8},
                                ibv_sge{piece_.addr + 9, 3, 9}};
  ibv_send_wr wr = End::request(IBV_WR_SEND, 1, pieces.data());
  wr.num_sge = 3;
  ASSERT_EQ(post(wr), 0);
  pieces = {};
  transport().room = 1;
  progress();
  ASSERT_EQ(transport().submitted.size(), 1U);
  EXPECT_EQ(transport().submitted[0].bytes, "0349ab");
  EXPECT_EQ(transport().submitted[0].pieces[1].lkey, 8U);
  EXPECT_EQ(transport().submitted[0].request.length, 6U);
}

TEST_F(SendQueueTest, request_is_kept_for_a_transport_that_needs_it_again) {
  begin();
  transport().keeps_requests = true;
  transport().completes_all = false;
  std::array<ibv_sge, 2> pieces{ibv_sge{piece_.addr, 4, 7}, ibv_sge{piece_.addr + 4, 4, 8}};
  ibv_send_wr wr = End::request(IBV_WR_RDMA_READ, 1, pieces.data());
  wr.num_sge = 2;
  wr.wr.rdma = {0x1000, 0x77};
  ASSERT_EQ(post(wr), 0);
  pieces = {};
  transport().completes_all = true;
  progress();
  ASSERT_EQ(transport().asked.size(), 1U);
  const SendRequest& asked = transport().asked[0];
  EXPECT_EQ(asked.opcode, IBV_WR_RDMA_READ);
  EXPECT_EQ(asked.remote_address, 0x1000U);
  ASSERT_EQ(asked.pieces_count, 2U);
  EXPECT_EQ(asked.pieces[1].lkey, 8U);
}

TEST_F(SendQueueTest, nothing_overtakes_a_request_that_the_transport_does_not_take) {
  begin();
  transport().room = 1;
  for (uint64_t id = 1; id <= 3; ++id) {
    ASSERT_EQ(send(id), 0);
  }
  EXPECT_EQ(transport().ids(), (Ids{1}));
  EXPECT_EQ(transport().tries, 2);  // the third was not even tried
  transport().room = 2;
  EXPECT_EQ(progress_and_poll(), (Ends{{1, IBV_WC_SUCCESS}, {2, IBV_WC_SUCCESS}, {3, IBV_WC_SUCCESS}}));
  EXPECT_EQ(transport().ids(), (Ids{1, 2, 3}));
}

TEST_F(SendQueueTest, advance_executes_what_is_queued_and_completes_nothing) {
  begin();
  transport().room = 0;
  ASSERT_EQ(send(1), 0);
  transport().room = 1;
  queue_->advance();
  EXPECT_EQ(transport().ids(), (Ids{1}));
  EXPECT_TRUE(poll_all(*own_->sends).empty());
  EXPECT_EQ(core().sends.unfinished(), 1U);
}

TEST_F(SendQueueTest, advance_gives_way_to_who_is_at_it) {
  begin();
  transport().room = 0;
  ASSERT_EQ(send(1), 0);
  transport().room = 1;
  const SendGuard guard(core().locks);
  std::thread([this] { queue_->advance(); }).join();
  EXPECT_TRUE(transport().submitted.empty());
}

TEST_F(SendQueueTest, numbers_wrap_around) {
  begin();
  for (std::atomic<uint32_t>* number :
       {&core().sends.done, &core().sends.next, &core().sends.tail, &core().sends.awaited}) {
    number->store(UINT32_MAX - 5);
  }
  Ids expected;
  for (uint64_t id = 1; id <= 16; ++id) {
    transport().room = id % 3 == 0 ? 0 : SIZE_MAX;  // some wait in the queue, some don't
    ASSERT_EQ(send(id), 0) << id;
    transport().room = SIZE_MAX;
    EXPECT_TRUE(queue_->has_awaited()) << id;
    ASSERT_EQ(progress_and_poll(), (Ends{{id, IBV_WC_SUCCESS}})) << id;
    expected.push_back(id);
  }
  EXPECT_EQ(transport().ids(), expected);
  EXPECT_EQ(core().sends.tail.load(), 10U);
}

TEST_F(SendQueueTest, is_full_at_its_depth_while_numbers_wrap_around) {
  begin();
  for (std::atomic<uint32_t>* number : {&core().sends.done, &core().sends.next, &core().sends.tail}) {
    number->store(UINT32_MAX - 1);
  }
  transport().completes_all = false;
  for (uint64_t id = 1; id <= 4; ++id) {
    ASSERT_EQ(send(id), 0);
  }
  EXPECT_EQ(send(5), ENOMEM);
  EXPECT_EQ(queue_->post(sends_from<1>(5).data(), nullptr), ENOMEM);
}

TEST_F(SendQueueTest, flags_and_operands_reach_the_transport) {
  begin();
  ibv_send_wr wr = End::request(IBV_WR_SEND_WITH_IMM, 1, &piece_, IBV_SEND_FENCE | IBV_SEND_SOLICITED);
  wr.imm_data = 0xa1b2c3d4;
  ASSERT_EQ(post(wr), 0);
  wr = End::request(IBV_WR_SEND_WITH_INV, 2, &piece_);
  wr.invalidate_rkey = 0x1122;
  ASSERT_EQ(post(wr), 0);
  wr = End::request(IBV_WR_RDMA_WRITE_WITH_IMM, 3, &piece_);
  wr.imm_data = 0x99;
  wr.wr.rdma = {0x123456789aULL, 0x77};
  ASSERT_EQ(post(wr), 0);
  wr = End::request(IBV_WR_ATOMIC_CMP_AND_SWP, 4, &piece_);
  wr.wr.atomic = {0x4000, 11, 22, 0x78};
  ASSERT_EQ(post(wr), 0);

  const auto& all = transport().submitted;
  ASSERT_EQ(all.size(), 4U);
  EXPECT_TRUE(all[0].request.is_fenced);
  EXPECT_TRUE(all[0].request.is_solicited);
  EXPECT_EQ(all[0].request.immediate, 0xa1b2c3d4U);
  EXPECT_FALSE(all[1].request.is_fenced);
  EXPECT_FALSE(all[1].request.is_solicited);
  EXPECT_EQ(all[1].request.immediate, 0x1122U);
  EXPECT_EQ(all[2].request.immediate, 0x99U);
  EXPECT_EQ(all[2].request.remote_address, 0x123456789aULL);
  EXPECT_EQ(all[2].request.key, 0x77U);
  EXPECT_EQ(all[3].request.compare_or_add, 11U);
  EXPECT_EQ(all[3].request.swap, 22U);
  EXPECT_EQ(all[3].request.remote_address, 0x4000U);
  EXPECT_EQ(all[3].request.key, 0x78U);
}

TEST_F(SendQueueTest, completion_names_operation_length_and_queue_pair) {
  begin();
  const std::array<std::pair<ibv_wr_opcode, ibv_wc_opcode>, 8> pairs{{
      {IBV_WR_SEND, IBV_WC_SEND},
      {IBV_WR_SEND_WITH_IMM, IBV_WC_SEND},
      {IBV_WR_SEND_WITH_INV, IBV_WC_SEND},
      {IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE},
      {IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE},
      {IBV_WR_RDMA_READ, IBV_WC_RDMA_READ},
      {IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WC_COMP_SWAP},
      {IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD},
  }};
  for (const auto& [posted, completed] : pairs) {
    ASSERT_EQ(post(End::request(posted, 0x1234567890abcdefULL, &piece_, IBV_SEND_SIGNALED)), 0) << posted;
    progress();
    const auto all = poll_all(*own_->sends);
    ASSERT_EQ(all.size(), 1U) << posted;
    EXPECT_EQ(all[0].wr_id, 0x1234567890abcdefULL);
    EXPECT_EQ(all[0].opcode, completed) << posted;
    EXPECT_EQ(all[0].byte_len, 5U);
    EXPECT_EQ(all[0].qp_num, CoreUnderTest::kQpn);
    EXPECT_EQ(all[0].vendor_err, 0U);
    EXPECT_EQ(all[0].wc_flags, 0U);
  }
}

TEST_F(SendQueueTest, takes_as_many_pieces_as_its_limit) {
  begin();
  std::array<ibv_sge, 4> pieces{piece_, piece_, piece_, piece_};
  ibv_send_wr wr = End::request(IBV_WR_SEND, 1, pieces.data());
  for (const auto& [count, error] : {std::pair{0, 0}, {3, 0}, {4, EINVAL}, {-1, EINVAL}}) {
    wr.num_sge = count;
    EXPECT_EQ(post(wr), error) << count;
  }
}

// --- Which operations each type of service has: 9.8.1 to 9.8.3, table of transport functions.

TEST_F(SendQueueTest, knows_the_operations_of_each_type) {
  constexpr std::array kAll{IBV_WR_SEND,
                            IBV_WR_SEND_WITH_IMM,
                            IBV_WR_RDMA_WRITE,
                            IBV_WR_RDMA_WRITE_WITH_IMM,
                            IBV_WR_SEND_WITH_INV,
                            IBV_WR_RDMA_READ,
                            IBV_WR_ATOMIC_CMP_AND_SWP,
                            IBV_WR_ATOMIC_FETCH_AND_ADD,
                            IBV_WR_TSO};
  const std::array<std::pair<ibv_qp_type, size_t>, 3> kinds{{{IBV_QPT_UD, 2}, {IBV_QPT_UC, 4}, {IBV_QPT_RC, 8}}};
  for (const auto& [type, known] : kinds) {
    begin(type, {16, 3, 32, false}, 16);
    AddressHandle target;
    for (size_t i = 0; i < kAll.size(); ++i) {
      ibv_send_wr wr = End::request(kAll[i], i, &piece_);
      wr.wr = {};
      if (type == IBV_QPT_UD) {
        wr.wr.ud.ah = &target.c;
      }
      EXPECT_EQ(post(wr), i < known ? 0 : EINVAL) << type << " " << kAll[i];
    }
  }
}

TEST_F(SendQueueTest, datagram_needs_an_address_handle) {
  begin(IBV_QPT_UD);
  ibv_send_wr wr = End::request(IBV_WR_SEND, 1, &piece_);
  wr.wr.ud = {nullptr, 5, 6};
  EXPECT_EQ(post(wr), EINVAL);
}

TEST_F(SendQueueTest, datagram_takes_its_target_and_the_own_qkey_for_one_with_the_high_bit) {
  begin(IBV_QPT_UD);
  core().attributes.qkey = 0x5555;
  AddressHandle target;
  target.gid = {1, 2, 3};
  target.is_loopback = true;
  target.attributes.grh.traffic_class = 9;
  ibv_send_wr wr = End::request(IBV_WR_SEND, 1, &piece_);
  wr.wr.ud = {&target.c, 0xff000012U, 0x7fffffffU};
  ASSERT_EQ(post(wr), 0);
  wr.wr.ud.remote_qkey = 0x80000000U;
  ASSERT_EQ(post(wr), 0);
  const auto& all = transport().submitted;
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].request.remote_qpn, 0x12U);  // 24 bits
  EXPECT_EQ(all[0].request.qkey, 0x7fffffffU);
  EXPECT_EQ(all[0].request.remote_gid, target.gid);
  EXPECT_TRUE(all[0].request.is_loopback);
  EXPECT_EQ(all[0].request.traffic_class, 9);
  EXPECT_EQ(all[1].request.qkey, 0x5555U);  // 10.2.5: the high-order bit stands for the queue pair's own
}

}  // namespace
}  // namespace ringbolt::device
