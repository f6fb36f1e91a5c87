// Receives of one queue pair: order, room, keys, ends. InfiniBand Architecture Specification 1.4, 10.3.1 and 11.4.1.2.

#include "device/receive_queue.h"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>

#include "device/part_test_support.h"
#include "device/shared_receive_queue.h"
#include "link/lane.h"

namespace ringbolt::device {
namespace {

/// A receive queue, plain, of four receives with three pieces.
class ReceiveQueueTest : public testing::Test {
 protected:
  void begin(ibv_qp_type type = IBV_QPT_RC, SharedReceiveQueue* shared = nullptr, uint32_t cqe = 64) {
    queue_.reset();
    own_ = std::make_unique<CoreUnderTest>(device_, type, cqe, shared);
    queue_ = std::make_unique<ReceiveQueue>(own_->core, 4, 3, false);
  }
  QueuePairCore& core() { return own_->core; }
  int post(ibv_recv_wr* wr) {
    bad_ = nullptr;
    return queue_->post(wr, &bad_);
  }
  int post_one(uint64_t id, std::vector<ibv_sge> pieces) {
    ibv_recv_wr wr{id, nullptr, pieces.data(), static_cast<int>(pieces.size())};
    return post(&wr);
  }
  /// A message comes, all in one, as a transport brings it.
  ibv_wc_status take(const std::string& message, unsigned flags = 0, uint32_t immediate = 0) {
    const base::LockGuard cq_guard(own_->receives->lock);
    const ReceiveGuard guard(core().locks);
    if (!queue_->open()) {
      return End::kNothing;
    }
    const auto length = static_cast<uint32_t>(message.size());
    const ibv_wc_status status = queue_->begin(length);
    if (status != IBV_WC_SUCCESS) {
      queue_->fail(*own_->receives, status);
      return status;
    }
    queue_->place(0, reinterpret_cast<const std::byte*>(message.data()), length);
    queue_->complete(*own_->receives, {0x77, IBV_WC_RECV, length, flags, immediate});
    return IBV_WC_SUCCESS;
  }
  void flush() {
    const base::LockGuard cq_guard(own_->receives->lock);
    const ReceiveGuard guard(core().locks);
    queue_->flush(*own_->receives);
  }
  Ends poll() { return ends_of(poll_all(*own_->receives)); }
  std::string bytes(size_t offset, size_t length) {
    return {reinterpret_cast<const char*>(data_.data()) + offset, length};
  }

  DeviceUnderTest device_;
  Memory data_{device_.pd(), 4096, IBV_ACCESS_LOCAL_WRITE};
  std::unique_ptr<CoreUnderTest> own_;
  std::unique_ptr<ReceiveQueue> queue_;
  ibv_recv_wr* bad_ = nullptr;
};

TEST_F(ReceiveQueueTest, gives_receives_out_in_the_order_of_posting) {
  begin();
  for (uint64_t id = 1; id <= 3; ++id) {
    ASSERT_EQ(post_one(id, {data_.piece(id * 100, 8)}), 0);
  }
  EXPECT_EQ(take("first"), IBV_WC_SUCCESS);
  EXPECT_EQ(take("second"), IBV_WC_SUCCESS);
  EXPECT_EQ(poll(), (Ends{{1, IBV_WC_SUCCESS}, {2, IBV_WC_SUCCESS}}));
  EXPECT_EQ(bytes(100, 5), "first");
  EXPECT_EQ(bytes(200, 6), "second");
}

TEST_F(ReceiveQueueTest, message_without_a_receive_finds_none) {
  begin();
  EXPECT_EQ(take("early"), End::kNothing);
  ASSERT_EQ(post_one(1, {data_.piece(0, 8)}), 0);
  EXPECT_EQ(take("in time"), IBV_WC_SUCCESS);
  EXPECT_EQ(take("late"), End::kNothing);
}

TEST_F(ReceiveQueueTest, takes_as_many_as_it_is_deep_and_one_for_each_that_is_taken) {
  begin();
  for (uint64_t id = 1; id <= 4; ++id) {
    ASSERT_EQ(post_one(id, {}), 0);
  }
  EXPECT_EQ(post_one(5, {}), ENOMEM);
  EXPECT_NE(bad_, nullptr);
  EXPECT_EQ(take(""), IBV_WC_SUCCESS);
  EXPECT_EQ(post_one(5, {}), 0);
  EXPECT_EQ(post_one(6, {}), ENOMEM);
}

TEST_F(ReceiveQueueTest, order_holds_around_its_end_many_times) {
  begin();
  uint64_t next = 0;
  for (uint64_t id = 0; id < 30; ++id) {
    ASSERT_EQ(post_one(id, {data_.piece(id * 16, 16)}), 0);
    if (id % 3 != 0) {  // one or two wait meanwhile
      ASSERT_EQ(take(std::to_string(next)), IBV_WC_SUCCESS);
      ASSERT_EQ(poll(), (Ends{{next, IBV_WC_SUCCESS}}));
      ASSERT_EQ(bytes(next * 16, std::to_string(next).size()), std::to_string(next));
      ++next;
    }
    if (id % 3 == 2) {
      ASSERT_EQ(take("x"), IBV_WC_SUCCESS);
      ASSERT_EQ(poll(), (Ends{{next, IBV_WC_SUCCESS}}));
      ++next;
    }
  }
}

TEST_F(ReceiveQueueTest, list_is_posted_up_to_the_bad_receive) {
  begin();
  std::array<ibv_sge, 4> pieces{data_.piece(0, 1), data_.piece(1, 1), data_.piece(2, 1), data_.piece(3, 1)};
  std::array<ibv_recv_wr, 3> list{};
  for (size_t i = 0; i < list.size(); ++i) {
    list[i] = {i, i + 1 < list.size() ? &list[i + 1] : nullptr, pieces.data(), 3};
  }
  list[1].num_sge = 4;  // one too many
  EXPECT_EQ(post(list.data()), EINVAL);
  EXPECT_EQ(bad_, &list[1]);
  list[1].num_sge = -1;
  EXPECT_EQ(post(&list[1]), EINVAL);
  EXPECT_EQ(take("abc"), IBV_WC_SUCCESS);
  EXPECT_EQ(take("abc"), End::kNothing);
}

TEST_F(ReceiveQueueTest, takes_receives_from_init_on) {
  begin();
  core().set_state(IBV_QPS_RESET);
  EXPECT_EQ(post_one(1, {}), EINVAL);
  for (const ibv_qp_state state : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_SQE, IBV_QPS_ERR}) {
    core().set_state(state);
    EXPECT_EQ(post_one(state, {}), 0) << state;
  }
}

TEST_F(ReceiveQueueTest, pieces_are_the_programs_again_after_the_post) {
  begin();
  std::array<ibv_sge, 1> pieces{data_.piece(10, 8)};
  ibv_recv_wr wr{1, nullptr, pieces.data(), 1};
  ASSERT_EQ(post(&wr), 0);
  pieces[0] = {};
  ASSERT_EQ(take("data"), IBV_WC_SUCCESS);
  EXPECT_EQ(bytes(10, 4), "data");
}

TEST_F(ReceiveQueueTest, fills_pieces_one_after_the_other_whatever_the_parts_that_come) {
  const std::string message = "abcdefghijklmnopqrs";
  for (uint32_t part = 1; part <= message.size(); ++part) {
    begin();
    std::memset(data_.data(), '.', 64);
    ASSERT_EQ(post_one(1, {data_.piece(0, 5), data_.piece(10, 0), data_.piece(20, 15)}), 0);
    {
      const base::LockGuard cq_guard(own_->receives->lock);
      const ReceiveGuard guard(core().locks);
      ASSERT_TRUE(queue_->open());
      ASSERT_EQ(queue_->begin(static_cast<uint32_t>(message.size())), IBV_WC_SUCCESS);
      for (uint32_t at = 0; at < message.size(); at += part) {
        const auto length = std::min<uint32_t>(part, static_cast<uint32_t>(message.size()) - at);
        queue_->place(at, reinterpret_cast<const std::byte*>(message.data()) + at, length);
      }
    }
    EXPECT_EQ(bytes(0, 36), "abcde...............fghijklmnopqrs..") << part;
  }
}

TEST_F(ReceiveQueueTest, message_fits_into_all_pieces_together_and_not_a_byte_more) {
  begin();
  ASSERT_EQ(post_one(1, {data_.piece(0, 3), data_.piece(8, 4)}), 0);
  EXPECT_EQ(take("1234567"), IBV_WC_SUCCESS);
  ASSERT_EQ(post_one(2, {data_.piece(0, 3), data_.piece(8, 4)}), 0);
  EXPECT_EQ(take("12345678"), IBV_WC_LOC_LEN_ERR);
  EXPECT_EQ(poll(), (Ends{{1, IBV_WC_SUCCESS}, {2, IBV_WC_LOC_LEN_ERR}}));
  EXPECT_EQ(counter(device_, "resp_local_length_error"), 1U);
}

TEST_F(ReceiveQueueTest, empty_message_wants_no_memory) {
  begin();
  ASSERT_EQ(post_one(1, {}), 0);
  ASSERT_EQ(post_one(2, {{0xdeadbeef, 0, 0x1234}}), 0);  // a piece without bytes: its key is not looked at
  EXPECT_EQ(take(""), IBV_WC_SUCCESS);
  EXPECT_EQ(take(""), IBV_WC_SUCCESS);
  ASSERT_EQ(post_one(3, {}), 0);
  EXPECT_EQ(take("x"), IBV_WC_LOC_LEN_ERR);
}

TEST_F(ReceiveQueueTest, key_must_be_of_the_domain_writable_and_hold_all_of_the_piece) {
  begin();
  ProtectionDomain other(device_.context());
  Memory foreign(other, 64, IBV_ACCESS_LOCAL_WRITE);
  Memory read_only(device_.pd(), 64, 0);
  const ibv_sge good = data_.piece(0, 8);
  ibv_sge unknown = good;
  unknown.lkey ^= 1;
  ibv_sge before = good;
  before.addr -= 1;
  ibv_sge beyond = data_.piece(data_.length() - 8, 9);
  for (const ibv_sge& bad : {foreign.piece(0, 8), read_only.piece(0, 8), unknown, before, beyond}) {
    ASSERT_EQ(post_one(1, {good, bad}), 0);     // posting looks at no key
    EXPECT_EQ(take("x"), IBV_WC_LOC_PROT_ERR);  // nor does it matter that the message ends before the piece
  }
  ASSERT_EQ(post_one(1, {data_.piece(data_.length() - 8, 8)}), 0);
  EXPECT_EQ(take("12345678"), IBV_WC_SUCCESS);
}

TEST_F(ReceiveQueueTest, key_of_a_region_that_is_gone_fails_the_receive) {
  begin();
  {
    Memory gone(device_.pd(), 64, IBV_ACCESS_LOCAL_WRITE);
    ASSERT_EQ(post_one(1, {gone.piece(0, 8)}), 0);
  }
  EXPECT_EQ(take("x"), IBV_WC_LOC_PROT_ERR);
}

TEST_F(ReceiveQueueTest, completion_tells_all_of_the_message) {
  begin();
  for (uint64_t id = 1; id <= 3; ++id) {
    ASSERT_EQ(post_one(id, {data_.piece(0, 8)}), 0);
  }
  take("abc", 0, 99);  // the word without its flag means nothing
  take("abcd", link::kSlotImmediate, 0x11223344);
  take("", link::kSlotInvalidate, 0x5566);
  const auto all = poll_all(*own_->receives);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].opcode, IBV_WC_RECV);
  EXPECT_EQ(all[0].byte_len, 3U);
  EXPECT_EQ(all[0].qp_num, CoreUnderTest::kQpn);
  EXPECT_EQ(all[0].src_qp, 0x77U);
  EXPECT_EQ(all[0].wc_flags, 0U);
  EXPECT_EQ(all[0].imm_data, 0U);
  EXPECT_EQ(all[1].wc_flags, static_cast<unsigned>(IBV_WC_WITH_IMM));
  EXPECT_EQ(all[1].imm_data, 0x11223344U);
  EXPECT_EQ(all[2].wc_flags, static_cast<unsigned>(IBV_WC_WITH_INV));
  EXPECT_EQ(all[2].invalidated_rkey, 0x5566U);
}

TEST_F(ReceiveQueueTest, datagram_has_its_route_header_in_front) {
  begin(IBV_QPT_UD);
  ASSERT_EQ(post_one(1, {data_.piece(0, 8)}), 0);
  take("x");
  EXPECT_EQ(poll_all(*own_->receives).at(0).wc_flags, static_cast<unsigned>(IBV_WC_GRH));
}

TEST_F(ReceiveQueueTest, transport_hears_how_many_receives_lay_there) {
  begin();
  ASSERT_EQ(post_one(1, {}), 0);
  std::array<ibv_recv_wr, 2> list{};
  list[0].next = &list[1];
  ASSERT_EQ(post(list.data()), 0);
  ASSERT_EQ(post_one(4, {}), 0);
  EXPECT_EQ(own_->transport.postings, (std::vector<uint32_t>{0, 1, 3}));
}

TEST_F(ReceiveQueueTest, open_receive_stays_open_until_it_ends) {
  begin();
  ASSERT_EQ(post_one(1, {data_.piece(0, 8)}), 0);
  ASSERT_EQ(post_one(2, {data_.piece(0, 8)}), 0);
  const base::LockGuard cq_guard(own_->receives->lock);
  const ReceiveGuard guard(core().locks);
  ASSERT_TRUE(queue_->open());
  ASSERT_TRUE(queue_->open());
  EXPECT_EQ(queue_->current().wr_id, 1U);
  EXPECT_EQ(queue_->ring().count(), 1U);
  queue_->fail(*own_->receives, IBV_WC_LOC_LEN_ERR);
  ASSERT_TRUE(queue_->open());
  EXPECT_EQ(queue_->current().wr_id, 2U);
}

TEST_F(ReceiveQueueTest, failure_without_an_open_receive_completes_nothing) {
  begin();
  ASSERT_EQ(post_one(1, {}), 0);
  {
    const base::LockGuard cq_guard(own_->receives->lock);
    const ReceiveGuard guard(core().locks);
    queue_->fail(*own_->receives, IBV_WC_LOC_QP_OP_ERR);
  }
  EXPECT_TRUE(poll().empty());
}

// --- The state ERR: 10.3.1.7.

TEST_F(ReceiveQueueTest, flushes_the_open_receive_and_then_the_others) {
  begin();
  for (uint64_t id = 1; id <= 3; ++id) {
    ASSERT_EQ(post_one(id, {data_.piece(0, 8)}), 0);
  }
  {
    const ReceiveGuard guard(core().locks);
    ASSERT_TRUE(queue_->open());
  }
  core().set_state(IBV_QPS_ERR);
  flush();
  const auto all = poll_all(*own_->receives);
  EXPECT_EQ(ends_of(all), (Ends{{1, IBV_WC_WR_FLUSH_ERR}, {2, IBV_WC_WR_FLUSH_ERR}, {3, IBV_WC_WR_FLUSH_ERR}}));
  EXPECT_EQ(all[0].qp_num, CoreUnderTest::kQpn);
  EXPECT_EQ(all[0].vendor_err, 0xf9U);
  EXPECT_EQ(counter(device_, "resp_cqe_flush_error"), 3U);
}

TEST_F(ReceiveQueueTest, flushes_as_many_as_the_completion_queue_has_room_for) {
  begin(IBV_QPT_RC, nullptr, 2);
  for (uint64_t id = 1; id <= 3; ++id) {
    ASSERT_EQ(post_one(id, {}), 0);
  }
  core().set_state(IBV_QPS_ERR);
  flush();
  EXPECT_EQ(poll(), (Ends{{1, IBV_WC_WR_FLUSH_ERR}, {2, IBV_WC_WR_FLUSH_ERR}}));
  flush();
  EXPECT_EQ(poll(), (Ends{{3, IBV_WC_WR_FLUSH_ERR}}));
}

TEST_F(ReceiveQueueTest, fatal_event_that_is_owed_comes_after_the_last_work_request) {
  begin(IBV_QPT_RC, nullptr, 2);
  for (uint64_t id = 1; id <= 3; ++id) {
    ASSERT_EQ(post_one(id, {}), 0);
  }
  core().set_state(IBV_QPS_ERR);
  core().owes_fatal.store(true);
  core().sends.tail.store(1);  // a send is not flushed yet
  flush();
  poll();
  flush();
  EXPECT_EQ(device_.next_event(), IBV_EVENT_CLIENT_REREGISTER);
  core().sends.done.store(1);
  flush();
  EXPECT_EQ(device_.next_event(), IBV_EVENT_QP_FATAL);
  flush();
  EXPECT_EQ(device_.next_event(), IBV_EVENT_CLIENT_REREGISTER);
}

TEST_F(ReceiveQueueTest, communication_is_established_once_and_in_rtr_alone) {
  begin();
  const auto note = [this] {
    const ReceiveGuard guard(core().locks);
    queue_->note_established();
  };
  note();  // RTS: the program knows already
  EXPECT_EQ(device_.next_event(), IBV_EVENT_CLIENT_REREGISTER);
  core().set_state(IBV_QPS_RTR);
  note();
  note();
  EXPECT_EQ(device_.next_event(), IBV_EVENT_COMM_EST);
  EXPECT_EQ(device_.next_event(), IBV_EVENT_CLIENT_REREGISTER);
  {
    const ReceiveGuard guard(core().locks);
    queue_->reset();
  }
  core().set_state(IBV_QPS_RTR);
  note();
  EXPECT_EQ(device_.next_event(), IBV_EVENT_COMM_EST);
}

TEST_F(ReceiveQueueTest, reset_forgets_what_is_posted_and_what_is_open) {
  begin();
  for (uint64_t id = 1; id <= 4; ++id) {
    ASSERT_EQ(post_one(id, {data_.piece(0, 8)}), 0);
  }
  {
    const ReceiveGuard guard(core().locks);
    ASSERT_TRUE(queue_->open());
    queue_->reset();
  }
  EXPECT_EQ(take("x"), End::kNothing);
  for (uint64_t id = 5; id <= 8; ++id) {
    ASSERT_EQ(post_one(id, {data_.piece(0, 8)}), 0);
  }
  EXPECT_EQ(take("x"), IBV_WC_SUCCESS);
  EXPECT_EQ(poll(), (Ends{{5, IBV_WC_SUCCESS}}));
}

TEST_F(ReceiveQueueTest, receives_in_place_on_rc_and_uc_with_receives_of_their_own) {
  for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC}) {
    begin(type);
    EXPECT_FALSE(queue_->receives_in_place());
    EXPECT_EQ(queue_->receive_in_place(), 0);
    EXPECT_TRUE(queue_->receives_in_place());
  }
  begin(IBV_QPT_UD);
  EXPECT_EQ(queue_->receive_in_place(), EOPNOTSUPP);
  EXPECT_FALSE(queue_->receives_in_place());
}

// --- With a shared receive queue.

class SharedReceivesTest : public ReceiveQueueTest {
 protected:
  std::unique_ptr<SharedReceiveQueue> shared_ = *SharedReceiveQueue::create(device_.pd(), {2, 2, 0});
  int post_shared(uint64_t id, ibv_sge piece) {
    ibv_recv_wr wr{id, nullptr, &piece, 1};
    return shared_->post(&wr, &bad_);
  }
};

TEST_F(SharedReceivesTest, takes_no_receives_of_its_own) {
  begin(IBV_QPT_RC, shared_.get());
  ibv_recv_wr wr{1, nullptr, nullptr, 0};
  EXPECT_EQ(post(&wr), EINVAL);
  EXPECT_EQ(bad_, &wr);
  EXPECT_EQ(queue_->receive_in_place(), EOPNOTSUPP);
}

TEST_F(SharedReceivesTest, takes_the_oldest_of_the_shared_queue) {
  begin(IBV_QPT_RC, shared_.get());
  EXPECT_EQ(take("early"), End::kNothing);
  ASSERT_EQ(post_shared(1, data_.piece(0, 8)), 0);
  ASSERT_EQ(post_shared(2, data_.piece(8, 8)), 0);
  EXPECT_EQ(take("one"), IBV_WC_SUCCESS);
  EXPECT_EQ(take("two"), IBV_WC_SUCCESS);
  EXPECT_EQ(take("three"), End::kNothing);
  EXPECT_EQ(poll(), (Ends{{1, IBV_WC_SUCCESS}, {2, IBV_WC_SUCCESS}}));
  EXPECT_EQ(bytes(8, 3), "two");
}

TEST_F(SharedReceivesTest, error_flushes_the_open_receive_alone_and_tells_of_the_last_one_once) {
  begin(IBV_QPT_RC, shared_.get());
  ASSERT_EQ(post_shared(1, data_.piece(0, 8)), 0);
  ASSERT_EQ(post_shared(2, data_.piece(8, 8)), 0);
  {
    const ReceiveGuard guard(core().locks);
    ASSERT_TRUE(queue_->open());
  }
  core().set_state(IBV_QPS_ERR);
  flush();
  flush();
  EXPECT_EQ(poll(), (Ends{{1, IBV_WC_WR_FLUSH_ERR}}));
  EXPECT_EQ(device_.next_event(), IBV_EVENT_QP_LAST_WQE_REACHED);
  EXPECT_EQ(device_.next_event(), IBV_EVENT_CLIENT_REREGISTER);
}

}  // namespace
}  // namespace ringbolt::device
