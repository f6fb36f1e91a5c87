// Paths, states, queues counted in frames, and what arrives.
#include <gtest/gtest.h>

#include "rig.h"

namespace ringbolt::profiles {
namespace {

constexpr size_t kFrame = 4096;

class MacQueue : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Like, MacQueue, testing::Values("tn3205", "apple"), name_of_profile);

TEST_P(MacQueue, refuses_a_path_from_an_empty_slot) {
  const Rig rig(std::string(GetParam()) + ",gid=2");  // a program that takes index 1 for granted
  const Held<ibv_qp> qp = rig.make_qp();
  ASSERT_EQ(to_init(qp.get()), 0);
  testing::internal::CaptureStderr();
  EXPECT_EQ(to_rtr(qp.get(), 1, rig.gid(2), 1), EINVAL);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("gid-index"), std::string::npos);
  EXPECT_EQ(to_rtr(qp.get(), 1, rig.gid(2), 32), EINVAL);
  EXPECT_EQ(to_rtr(qp.get(), qp->qp_num, ibv_gid{}, 2), EINVAL);
  EXPECT_EQ(to_rtr(qp.get(), qp->qp_num, rig.gid(2), 2), 0);
}

TEST_P(MacQueue, refuses_any_path_of_a_bridged_port) {
  ibv_gid some{};
  some.raw[0] = 0xfe;
  for (const auto& [knob, error] : {std::pair{"", ENODATA}, std::pair{",empty-gid=einval", EINVAL}}) {
    const Rig rig(std::string(GetParam()) + ",gid=empty" + knob);
    const Held<ibv_qp> qp = rig.make_qp();
    ASSERT_EQ(to_init(qp.get()), 0);
    EXPECT_EQ(to_rtr(qp.get(), 1, some, 1), error);
  }
  const Rig rig(std::string(GetParam()) + ",gid=empty,errno=darwin");
  const Held<ibv_qp> qp = rig.make_qp();
  ASSERT_EQ(to_init(qp.get()), 0);
  EXPECT_EQ(to_rtr(qp.get(), 1, some, 1), 96);
}

TEST_P(MacQueue, refuses_a_path_to_what_is_not_on_the_cable) {
  const Rig rig(GetParam());
  const Held<ibv_qp> qp = rig.make_qp();
  ASSERT_EQ(to_init(qp.get()), 0);
  ibv_gid elsewhere = rig.gid(1);
  elsewhere.raw[15] ^= 0x40;
  EXPECT_EQ(to_rtr(qp.get(), 1, elsewhere, 1), ETIMEDOUT);
}

TEST_P(MacQueue, wants_exactly_the_attributes_of_a_step) {
  const Rig rig(GetParam());
  const Held<ibv_qp> qp = rig.make_qp();
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_INIT;
  a.port_num = 1;
  EXPECT_EQ(ibv_modify_qp(qp.get(), &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT), EINVAL);
  EXPECT_EQ(ibv_modify_qp(qp.get(), &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS | IBV_QP_QKEY),
            EINVAL);
  EXPECT_EQ(to_init(qp.get()), 0);
}

TEST_P(MacQueue, takes_receives_from_the_state_of_the_knob_on) {
  struct Row {
    const char* knob;
    int in_init;
    int in_rtr;
  };
  for (const Row& row : {Row{"init", 0, 0}, Row{"rtr", EINVAL, 0}, Row{"rts", EINVAL, EINVAL}}) {
    const Rig rig(std::string(GetParam()) + ",recv-from=" + row.knob);
    const Buffer buffer(rig, kFrame);
    const Held<ibv_qp> qp = rig.make_qp();
    ASSERT_EQ(to_init(qp.get()), 0);
    EXPECT_EQ(post_receive(qp.get(), buffer.piece(64)), row.in_init) << row.knob;
    ASSERT_EQ(to_rtr(qp.get(), qp->qp_num, rig.gid(1), 1), 0);
    EXPECT_EQ(post_receive(qp.get(), buffer.piece(64)), row.in_rtr) << row.knob;
    EXPECT_EQ(post_send(qp.get(), buffer.piece(64)), EINVAL);  // never before RTS
    ASSERT_EQ(to_rts(qp.get()), 0);
    EXPECT_EQ(post_receive(qp.get(), buffer.piece(64)), 0) << row.knob;
  }
}

TEST(Roce, takes_knobs_too) {
  const Rig rig("roce,recv-from=rtr,late-mr=error");
  const Held<ibv_qp> qp = rig.make_qp();
  const Buffer early(rig, kFrame);
  ASSERT_EQ(to_init(qp.get()), 0);
  EXPECT_EQ(post_receive(qp.get(), early.piece(64)), EINVAL);
  const Pair pair(rig);
  const Buffer late(rig, kFrame);
  ASSERT_EQ(post_receive(pair.b.get(), late.piece(kFrame)), 0);
  ASSERT_EQ(post_send(pair.a.get(), early.piece(64)), 0);
  const auto done = poll(rig.cq.get(), 1);
  EXPECT_EQ(done.at(0).status, IBV_WC_LOC_PROT_ERR);
}

TEST_P(MacQueue, takes_any_mtu_and_any_packet_numbers) {
  const Rig rig(GetParam());
  const Buffer source(rig, 2 * kFrame);
  const Buffer target(rig, 2 * kFrame);
  for (const ibv_mtu mtu : {IBV_MTU_256, IBV_MTU_512, IBV_MTU_1024, IBV_MTU_2048, IBV_MTU_4096}) {
    const Held<ibv_qp> a = rig.make_qp();
    const Held<ibv_qp> b = rig.make_qp();
    for (auto [qp, other] : {std::pair{a.get(), b.get()}, std::pair{b.get(), a.get()}}) {
      ASSERT_EQ(to_init(qp), 0);
      ibv_qp_attr step{};
      step.qp_state = IBV_QPS_RTR;
      step.path_mtu = mtu;
      step.dest_qp_num = other->qp_num;
      step.rq_psn = 1000;  // not what the other end begins with
      step.ah_attr.port_num = 1;
      step.ah_attr.is_global = 1;
      step.ah_attr.grh.dgid = rig.gid(1);
      step.ah_attr.grh.sgid_index = 1;
      ASSERT_EQ(ibv_modify_qp(qp, &step,
                              IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN),
                0)
          << mtu;
      ASSERT_EQ(to_rts(qp), 0);
    }
    ASSERT_EQ(post_receive(b.get(), target.piece(2 * kFrame)), 0);
    ASSERT_EQ(post_send(a.get(), source.piece(2 * kFrame)), 0);
    const auto done = poll(rig.cq.get(), 2);
    ASSERT_EQ(done.size(), 2U);
    EXPECT_EQ(of(done, 2)->byte_len, 2 * kFrame);
  }
}

TEST_P(MacQueue, carries_the_longest_message_and_no_longer_one) {
  constexpr size_t kLongest = 4095 * kFrame;
  const Rig rig(std::string(GetParam()) + ",short-grant=0");
  const Buffer source(rig, kLongest + 1);
  const Buffer target(rig, kLongest);
  const Pair pair(rig, rig.wanted(IBV_QPT_UC, 4095));
  source.data()[kLongest - 1] = 77;
  ASSERT_EQ(post_receive(pair.b.get(), target.piece(kLongest)), 0);
  EXPECT_EQ(post_send(pair.a.get(), source.piece(kLongest + 1)), -ENOMEM);
  ASSERT_EQ(post_send(pair.a.get(), source.piece(kLongest)), 0);
  const auto done = poll(rig.cq.get(), 2);
  ASSERT_EQ(done.size(), 2U);
  EXPECT_EQ(of(done, 2)->status, IBV_WC_SUCCESS);
  EXPECT_EQ(of(done, 2)->byte_len, 16'773'120U);
  EXPECT_EQ(target.data()[kLongest - 1], 77);
}

TEST(Usb4Linux, may_refuse_empty_sends_as_towards_a_mac) {
  for (const auto& [knob, error] : {std::pair{"", 0}, std::pair{",empty-send=emsgsize", EMSGSIZE}}) {
    const Rig rig(std::string("usb4-linux") + knob);
    const Buffer buffer(rig, kFrame);
    const Pair pair(rig);
    EXPECT_EQ(post_send(pair.a.get(), buffer.piece(0)), error);
    EXPECT_EQ(post_send(pair.a.get(), buffer.piece(1)), 0);
  }
  const Rig mac("apple,empty-send=emsgsize,errno=darwin");
  const Buffer buffer(mac, kFrame);
  const Pair pair(mac);
  EXPECT_EQ(post_send(pair.a.get(), buffer.piece(0)), 40);
}

TEST_P(MacQueue, carries_messages) {
  const Rig rig(GetParam());
  const Buffer source(rig, 64 * kFrame);
  const Buffer target(rig, 64 * kFrame);
  const Pair pair(rig);
  for (size_t i = 0; i < source.bytes; ++i) {
    source.data()[i] = static_cast<uint8_t>(i * 7 + i / 251);
  }
  for (const size_t size : {size_t{1}, kFrame, kFrame + 1, 64 * kFrame}) {
    std::memset(target.data(), 0, target.bytes);
    ASSERT_EQ(post_receive(pair.b.get(), target.piece(size)), 0);
    ASSERT_EQ(post_send(pair.a.get(), source.piece(size)), 0);
    const auto done = poll(rig.cq.get(), 2);
    ASSERT_EQ(done.size(), 2U);
    EXPECT_EQ(of(done, 1)->status, IBV_WC_SUCCESS);
    EXPECT_EQ(of(done, 2)->status, IBV_WC_SUCCESS);
    EXPECT_EQ(of(done, 2)->byte_len, size);
    EXPECT_EQ(std::memcmp(source.data(), target.data(), size), 0);
  }
}

TEST_P(MacQueue, grants_depth_in_frames) {
  const Rig rig(GetParam());
  for (const auto& [wanted, granted] : {std::pair{1U, 1023U}, std::pair{256U, 1023U}, std::pair{2000U, 2000U},
                                        std::pair{4095U, 4095U}}) {
    ibv_qp_init_attr init = rig.wanted(IBV_QPT_UC, wanted);
    const Held<ibv_qp> qp(ibv_create_qp(rig.pd.get(), &init));
    ASSERT_NE(qp, nullptr);
    EXPECT_EQ(init.cap.max_send_wr, granted);
    ibv_qp_attr attributes{};
    ibv_qp_init_attr queried{};
    ASSERT_EQ(ibv_query_qp(qp.get(), &attributes, IBV_QP_CAP, &queried), 0);
    EXPECT_EQ(attributes.cap.max_recv_wr, granted);
  }
}

/// Posts receives of `size` bytes until one is refused; how many went.
int fill(ibv_qp* qp, const Buffer& buffer, size_t size, int& error, ibv_recv_wr** bad) {
  for (int count = 0;; ++count) {
    error = post_receive(qp, buffer.piece(size), bad);
    if (error != 0) {
      return count;
    }
  }
}

TEST(Tn3205, takes_receives_up_to_the_granted_frames) {
  const Rig rig("tn3205");
  const Buffer buffer(rig, 16 * kFrame);
  const Pair pair(rig);
  ibv_recv_wr marker{};
  ibv_recv_wr* bad = &marker;
  int error = 0;
  EXPECT_EQ(fill(pair.a.get(), buffer, 16 * kFrame, error, &bad), 63);  // 1023 frames, 16 each
  EXPECT_EQ(error, -12);
  EXPECT_EQ(bad, &marker);                                              // left as it was
  EXPECT_EQ(fill(pair.a.get(), buffer, kFrame, error, &bad), 15);       // what was left
}

TEST(Apple, takes_fewer_receives_than_it_granted) {
  const Rig rig("apple");
  const Buffer buffer(rig, 16 * kFrame);
  const Pair pair(rig);
  ibv_recv_wr* bad = nullptr;
  int error = 0;
  EXPECT_EQ(fill(pair.a.get(), buffer, 16 * kFrame, error, &bad), 62);  // the 63rd is refused, as one user saw
  EXPECT_EQ(error, -12);
}

TEST(Apple, may_take_too_many_receives_and_break_later) {
  const Rig rig("apple,overrun=silent,short-grant=1021");  // two frames
  const Buffer buffer(rig, kFrame);
  const Pair pair(rig);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(post_receive(pair.b.get(), buffer.piece(kFrame)), 0);
  }
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(post_send(pair.a.get(), buffer.piece(kFrame)), 0);
    const auto done = poll(rig.cq.get(), 2);
    ASSERT_EQ(done.size(), 2U);
    EXPECT_EQ(of(done, 2)->status, i < 2 ? IBV_WC_SUCCESS : IBV_WC_LOC_LEN_ERR) << i;
  }
}

TEST_P(MacQueue, takes_sends_up_to_the_granted_frames_and_gives_them_back) {
  const Rig rig(std::string(GetParam()) + ",short-grant=0");
  const Buffer buffer(rig, 16 * kFrame);
  const Pair pair(rig);
  ibv_send_wr marker{};
  ibv_send_wr* bad = &marker;
  int posted = 0;
  while (post_send(pair.a.get(), buffer.piece(16 * kFrame), IBV_WR_SEND, &bad) == 0) {
    ++posted;
  }
  EXPECT_EQ(posted, 63);
  EXPECT_EQ(bad, &marker);
  ASSERT_EQ(post_receive(pair.b.get(), buffer.piece(16 * kFrame)), 0);
  ASSERT_EQ(poll(rig.cq.get(), 2).size(), 2U);
  EXPECT_EQ(post_send(pair.a.get(), buffer.piece(16 * kFrame)), 0);
}

TEST_P(MacQueue, refuses_a_message_that_no_queue_holds) {
  const Rig rig(GetParam());
  const Buffer buffer(rig, 1024 * kFrame);
  const Pair pair(rig);
  EXPECT_EQ(post_send(pair.a.get(), buffer.piece(1023 * kFrame + 1)), -12);
}

TEST_P(MacQueue, counts_an_empty_message_as_a_frame) {
  const Rig rig(GetParam());
  const Buffer buffer(rig, kFrame);
  const Pair pair(rig);
  ASSERT_EQ(post_receive(pair.b.get(), buffer.piece(kFrame)), 0);
  ASSERT_EQ(post_send(pair.a.get(), buffer.piece(0)), 0);
  const auto done = poll(rig.cq.get(), 2);
  ASSERT_EQ(done.size(), 2U);
  EXPECT_EQ(of(done, 2)->status, IBV_WC_SUCCESS);
  EXPECT_EQ(of(done, 2)->byte_len, 0U);
}

TEST_P(MacQueue, wants_as_many_frames_in_the_receive_as_in_the_message) {
  struct Row {
    size_t message;
    size_t room;
    ibv_wc_status status;
  };
  for (const Row& row : {Row{100, kFrame, IBV_WC_SUCCESS}, Row{kFrame, 2 * kFrame, IBV_WC_LOC_LEN_ERR},
                         Row{kFrame + 1, 2 * kFrame, IBV_WC_SUCCESS}, Row{2 * kFrame, kFrame, IBV_WC_LOC_LEN_ERR}}) {
    const Rig rig(GetParam());
    const Buffer buffer(rig, 2 * kFrame);
    const Pair pair(rig);
    ASSERT_EQ(post_receive(pair.b.get(), buffer.piece(row.room)), 0);
    ASSERT_EQ(post_send(pair.a.get(), buffer.piece(row.message)), 0);
    const auto done = poll(rig.cq.get(), 2);
    ASSERT_EQ(done.size(), 2U);
    EXPECT_EQ(of(done, 2)->status, row.status) << row.message << " into " << row.room;
    EXPECT_EQ(of(done, 1)->status, IBV_WC_SUCCESS);  // the sender never hears of it
  }
}

TEST_P(MacQueue, completes_sends_before_they_are_received) {
  const Rig rig(GetParam());
  const Buffer source(rig, 8 * kFrame);
  const Buffer target(rig, 8 * kFrame);
  const Pair pair(rig);
  for (uint8_t i = 0; i < 8; ++i) {
    std::memset(source.data(), i, 8 * kFrame);  // the memory is ours again after each completion
    ASSERT_EQ(post_send(pair.a.get(), source.piece(8 * kFrame)), 0);
    const auto sent = poll(rig.cq.get(), 1);
    ASSERT_EQ(sent.size(), 1U);
    EXPECT_EQ(sent[0].opcode, IBV_WC_SEND);
    EXPECT_EQ(sent[0].status, IBV_WC_SUCCESS);
  }
  for (uint8_t i = 0; i < 8; ++i) {
    ASSERT_EQ(post_receive(pair.b.get(), target.piece(8 * kFrame)), 0);
    const auto received = poll(rig.cq.get(), 1);
    ASSERT_EQ(received.size(), 1U);
    EXPECT_EQ(received[0].opcode, IBV_WC_RECV);
    EXPECT_EQ(target.data()[0], i);
    EXPECT_EQ(target.data()[8 * kFrame - 1], i);
  }
}

TEST_P(MacQueue, delivers_later_than_it_completes_by_the_time_of_the_knob) {
  const Rig rig(std::string(GetParam()) + ",early-cqe=30000us");
  const Buffer buffer(rig, kFrame);
  const Pair pair(rig);
  ASSERT_EQ(post_receive(pair.b.get(), buffer.piece(kFrame)), 0);
  const auto posted = std::chrono::steady_clock::now();
  ASSERT_EQ(post_send(pair.a.get(), buffer.piece(kFrame)), 0);
  EXPECT_EQ(poll(rig.cq.get(), 1).at(0).opcode, IBV_WC_SEND);
  EXPECT_EQ(poll(rig.cq.get(), 1).at(0).opcode, IBV_WC_RECV);
  EXPECT_GE(std::chrono::steady_clock::now() - posted, std::chrono::milliseconds(30));
}

TEST_P(MacQueue, loses_what_it_completed_when_it_is_destroyed_at_once) {
  const Rig rig(std::string(GetParam()) + ",early-cqe=30000us");
  const Buffer buffer(rig, kFrame);
  Pair pair(rig);
  ASSERT_EQ(post_receive(pair.b.get(), buffer.piece(kFrame)), 0);
  ASSERT_EQ(post_send(pair.a.get(), buffer.piece(kFrame)), 0);
  EXPECT_EQ(poll(rig.cq.get(), 1).at(0).status, IBV_WC_SUCCESS);
  testing::internal::CaptureStderr();
  pair.a.reset();
  EXPECT_NE(testing::internal::GetCapturedStderr().find("1 completed, undelivered messages"), std::string::npos);
  ibv_wc wc{};
  const conformance::Deadline later(std::chrono::milliseconds(60));
  while (!later.has_passed()) {
    ASSERT_EQ(ibv_poll_cq(rig.cq.get(), 1, &wc), 0);  // nothing comes
  }
}

TEST(Apple, sends_no_faster_than_the_line) {
  const Rig rig("apple,rate=line");  // the default device says 100 Gb/s
  constexpr int kMessages = 200;
  constexpr size_t kBytes = 16 * kFrame;
  const Buffer buffer(rig, kBytes);
  const Pair pair(rig);
  const auto began = std::chrono::steady_clock::now();
  for (int sent = 0, received = 0; received < kMessages;) {
    ASSERT_EQ(post_receive(pair.b.get(), buffer.piece(kBytes)), 0);
    ASSERT_EQ(post_send(pair.a.get(), buffer.piece(kBytes)), 0);
    for (++sent; received < sent;) {
      const auto done = poll(rig.cq.get(), 1);
      ASSERT_EQ(done.size(), 1U);
      received += done[0].opcode == IBV_WC_RECV ? 1 : 0;
    }
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  EXPECT_LE(kMessages * kBytes * 8 / took.count(), 100e9);
}

TEST_P(MacQueue, knows_the_regions_that_there_were_at_rtr) {
  const Rig rig(GetParam());
  const Pair pair(rig);
  const Buffer late(rig, kFrame);
  ASSERT_EQ(post_receive(pair.b.get(), late.piece(kFrame)), 0);
  ASSERT_EQ(post_send(pair.a.get(), late.piece(64)), 0);
  const auto done = poll(rig.cq.get(), 2);
  ASSERT_EQ(done.size(), 2U);
  EXPECT_EQ(of(done, 2)->status, IBV_WC_LOC_PROT_ERR);
  const Rig kinder(std::string(GetParam()) + ",late-mr=ok");
  const Pair other(kinder);
  const Buffer fine(kinder, kFrame);  // as late as the other
  ASSERT_EQ(post_receive(other.b.get(), fine.piece(kFrame)), 0);
  ASSERT_EQ(post_send(other.a.get(), fine.piece(64)), 0);
  EXPECT_EQ(of(poll(kinder.cq.get(), 2), 2)->status, IBV_WC_SUCCESS);
}

TEST(Tn3205, has_no_operation_but_send) {
  const Rig rig("tn3205");
  const Buffer buffer(rig, kFrame);
  const Pair pair(rig);
  for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM,
                                     IBV_WR_ATOMIC_FETCH_AND_ADD}) {
    EXPECT_EQ(post_send(pair.a.get(), buffer.piece(8), opcode), EOPNOTSUPP) << opcode;
  }
}

TEST(Apple, delivers_a_write_as_a_message_and_leaves_the_target_alone) {
  const Rig rig("apple");
  const Buffer source(rig, kFrame);
  const Buffer target(rig, kFrame);
  const Buffer stream(rig, kFrame);
  const Pair pair(rig, rig.wanted());
  std::memset(source.data(), 0x5a, kFrame);
  ASSERT_EQ(post_receive(pair.b.get(), stream.piece(kFrame)), 0);
  testing::internal::CaptureStderr();
  ibv_sge piece = source.piece(kFrame);
  ibv_send_wr wr{};
  ibv_send_wr* bad = nullptr;
  wr.wr_id = 1;
  wr.sg_list = &piece;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.wr.rdma.remote_addr = reinterpret_cast<uint64_t>(target.data());
  wr.wr.rdma.rkey = target.mr->rkey;
  ASSERT_EQ(ibv_post_send(pair.a.get(), &wr, &bad), 0);
  const auto done = poll(rig.cq.get(), 2);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("write-into-stream"), std::string::npos);
  ASSERT_EQ(done.size(), 2U);
  EXPECT_EQ(of(done, 1)->status, IBV_WC_SUCCESS);
  EXPECT_EQ(of(done, 1)->opcode, IBV_WC_RDMA_WRITE);
  EXPECT_EQ(of(done, 2)->opcode, IBV_WC_RECV);
  EXPECT_EQ(std::memcmp(stream.data(), source.data(), kFrame), 0);
  EXPECT_EQ(target.data()[0], 0);
}

TEST(Usb4Linux, reads_and_writes_over_rc) {
  const Rig rig("usb4-linux");
  const Pair pair(rig, rig.wanted(IBV_QPT_RC));
  const Buffer local(rig, kFrame);
  const Held<void> memory(std::aligned_alloc(kFrame, kFrame));
  std::memset(memory.get(), 0x33, kFrame);
  const Held<ibv_mr> remote(ibv_reg_mr(rig.pd.get(), memory.get(), kFrame,
                                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE));
  ibv_sge piece = local.piece(kFrame);
  ibv_send_wr wr{};
  ibv_send_wr* bad = nullptr;
  wr.wr_id = 1;
  wr.sg_list = &piece;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_RDMA_READ;
  wr.wr.rdma.remote_addr = reinterpret_cast<uint64_t>(memory.get());
  wr.wr.rdma.rkey = remote->rkey;
  ASSERT_EQ(ibv_post_send(pair.a.get(), &wr, &bad), 0);
  ASSERT_EQ(poll(rig.cq.get(), 1).size(), 1U);
  wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
  EXPECT_EQ(ibv_post_send(pair.a.get(), &wr, &bad), EOPNOTSUPP);
  wr.opcode = IBV_WR_RDMA_READ;
  wr.send_flags = IBV_SEND_INLINE;
  EXPECT_EQ(ibv_post_send(pair.a.get(), &wr, &bad), EINVAL);
}

}  // namespace
}  // namespace ringbolt::profiles
