// Faults that hold for a while, and those of objects and of how a device looks.
#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <stdexcept>
#include <thread>

#include "rig.h"

namespace ringbolt::profiles {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
constexpr size_t kBytes = 64;

TEST(ObjectFault, leaves_so_many_of_each_kind) {
  {
    const Faults faults("exhaust object pd left 2");
    const Rig rig("roce");  // has one
    const Held<ibv_pd> second(ibv_alloc_pd(rig.context.get()));
    ASSERT_NE(second, nullptr);
    EXPECT_EQ(ibv_alloc_pd(rig.context.get()), nullptr);
    EXPECT_EQ(errno, ENOMEM);
  }
  {
    const Faults faults("exhaust object cq left 1");
    const Rig rig("roce");
    EXPECT_EQ(ibv_create_cq(rig.context.get(), 1, nullptr, nullptr, 0), nullptr);
    EXPECT_EQ(errno, ENOMEM);
  }
  {
    const Faults faults("exhaust object qp left 1");
    const Rig rig("roce");
    Held<ibv_qp> only = rig.make_qp();
    ASSERT_NE(only, nullptr);
    EXPECT_EQ(rig.make_qp(), nullptr);
    EXPECT_EQ(errno, EBUSY);
    only.reset();
    EXPECT_NE(rig.make_qp(), nullptr);  // its place is free again
  }
  {
    const Faults faults("exhaust object mr left 1 errno EFAULT");
    const Rig rig("roce");
    const Buffer first(rig, kBytes);
    EXPECT_NE(first.mr, nullptr);
    errno = 0;
    const Buffer second(rig, kBytes);
    EXPECT_EQ(second.mr, nullptr);
    EXPECT_EQ(errno, EFAULT);
  }
}

TEST(ObjectFault, drains_the_pool_that_regions_share) {
  const Faults faults("exhaust object dma left 100000");
  const Rig rig("roce");
  const Held<ibv_qp> qp = rig.make_qp();
  ASSERT_EQ(to_init(qp.get()), 0);
  {
    const Buffer large(rig, 100000);
    EXPECT_NE(large.mr, nullptr);  // registering tells nothing
  }
  EXPECT_EQ(to_rtr(qp.get(), qp->qp_num, rig.gid(1), 1), EFAULT);  // and what is deregistered does not come back
}

TEST(DestroyFault, hangs) {
  const Faults faults("destroy-hang by 60ms");
  const Rig rig("roce");
  Held<ibv_qp> qp = rig.make_qp();
  const auto began = Clock::now();
  qp.reset();
  EXPECT_GE(Clock::now() - began, milliseconds(60));
}

TEST(QueryFault, hangs_when_the_device_is_asked) {
  const Faults faults("query-hang by 60ms count 1-1");
  const Rig rig("roce");
  const auto took = [&] {
    const auto began = Clock::now();
    EXPECT_GT(rig.device().max_qp, 0);
    return Clock::now() - began;
  };
  EXPECT_LT(took(), milliseconds(50));
  EXPECT_GE(took(), milliseconds(60));
  EXPECT_LT(took(), milliseconds(50));
}

TEST(StateFault, freezes_the_machine_for_a_time_and_all_arrives_after) {
  const Faults faults("frozen time 0s-200ms");
  const Rig rig("roce");
  const Buffer buffer(rig, 2 * kBytes);
  const Pair pair(rig, rig.wanted(IBV_QPT_UC));
  const auto began = Clock::now();
  EXPECT_EQ(rig.port().state, IBV_PORT_ACTIVE);  // nothing tells
  ASSERT_EQ(post_receive(pair.b.get(), buffer.piece(kBytes, kBytes)), 0);
  ASSERT_EQ(post_send(pair.a.get(), buffer.piece(kBytes)), 0);
  EXPECT_EQ(poll(rig.cq.get(), 2).size(), 2U);
  EXPECT_GE(Clock::now() - began, milliseconds(100));
}

TEST(StateFault, takes_the_cable_down_and_up_with_its_events) {
  const Faults faults("flap by 60ms every 200ms");
  const Rig rig("roce");
  int downs = 0;
  int ups = 0;
  for (int events = 0; events < 4; ++events) {
    pollfd ready{rig.context->async_fd, POLLIN, 0};
    ASSERT_EQ(::poll(&ready, 1, 5000), 1);
    ibv_async_event event{};
    ASSERT_EQ(ibv_get_async_event(rig.context.get(), &event), 0);
    downs += event.event_type == IBV_EVENT_PORT_ERR ? 1 : 0;
    ups += event.event_type == IBV_EVENT_PORT_ACTIVE ? 1 : 0;
    ibv_ack_async_event(&event);
  }
  EXPECT_EQ(downs, 2);
  EXPECT_EQ(ups, 2);
}

TEST(StateFault, carries_all_data_over_a_cable_that_flaps) {
  const Faults faults("flap by 20ms every 50ms");
  const Rig rig("roce");
  const Buffer buffer(rig, 2 * kBytes);
  const Pair pair(rig, rig.wanted(IBV_QPT_RC));
  const auto began = Clock::now();
  uint8_t number = 0;
  while (Clock::now() - began < milliseconds(300)) {
    buffer.data()[0] = ++number;
    ASSERT_EQ(post_receive(pair.b.get(), buffer.piece(kBytes, kBytes)), 0);
    ASSERT_EQ(post_send(pair.a.get(), buffer.piece(kBytes)), 0);
    for (const ibv_wc& wc : poll(rig.cq.get(), 2)) {
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
    }
    ASSERT_EQ(buffer.data()[kBytes], number);
  }
}

TEST(StateFault, silences_a_queue_pair_without_traffic_and_no_other) {
  const Faults faults("qp-age after 100ms");
  const Rig rig("roce");
  const Buffer buffer(rig, 2 * kBytes);
  const Pair idle(rig);
  const Pair busy(rig);
  const auto use = [&](const Pair& pair) {
    EXPECT_EQ(post_receive(pair.b.get(), buffer.piece(kBytes, kBytes)), 0);
    EXPECT_EQ(post_send(pair.a.get(), buffer.piece(kBytes)), 0);
  };
  use(idle);
  EXPECT_EQ(poll(rig.cq.get(), 2).size(), 2U);
  for (int i = 0; i < 15; ++i) {
    use(busy);
    EXPECT_EQ(poll(rig.cq.get(), 2).size(), 2U);
    std::this_thread::sleep_for(milliseconds(10));
  }
  use(idle);
  const auto began = Clock::now();
  ibv_wc wc{};
  while (Clock::now() - began < milliseconds(100)) {
    ASSERT_EQ(ibv_poll_cq(rig.cq.get(), 1, &wc), 0);  // silence: no completion, no error
  }
}

TEST(StateFault, ends_a_reliable_queue_pair_that_has_aged) {
  const Faults faults("qp-age after 50ms");
  const Rig rig("roce");
  const Buffer buffer(rig, 2 * kBytes);
  const Pair pair(rig, rig.wanted(IBV_QPT_RC));
  ASSERT_EQ(post_receive(pair.b.get(), buffer.piece(kBytes, kBytes)), 0);
  ASSERT_EQ(post_send(pair.a.get(), buffer.piece(kBytes)), 0);
  EXPECT_EQ(poll(rig.cq.get(), 2).size(), 2U);
  std::this_thread::sleep_for(milliseconds(100));
  ASSERT_EQ(post_send(pair.a.get(), buffer.piece(kBytes)), 0);
  const auto all = poll(rig.cq.get(), 1);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].status, IBV_WC_RETRY_EXC_ERR);
}

TEST(StateFault, delivers_at_long_ticks_after_some_idle_time) {
  const Faults faults("coalesce after 50ms every 200ms");
  const Rig rig("roce");
  const Buffer buffer(rig, 2 * kBytes);
  const Pair pair(rig, rig.wanted(IBV_QPT_UC));
  const auto rounds = [&](int count) {
    const auto began = Clock::now();
    for (int i = 0; i < count; ++i) {
      EXPECT_EQ(post_receive(pair.b.get(), buffer.piece(kBytes, kBytes)), 0);
      EXPECT_EQ(post_send(pair.a.get(), buffer.piece(kBytes)), 0);
      EXPECT_EQ(poll(rig.cq.get(), 2).size(), 2U);
    }
    return Clock::now() - began;
  };
  EXPECT_LT(rounds(10), milliseconds(50));
  std::this_thread::sleep_for(milliseconds(100));
  EXPECT_GE(rounds(2), milliseconds(250));  // two ticks: it sleeps until the traffic lasts
  EXPECT_LT(rounds(10), milliseconds(50));
}

/// A UD queue pair that sends to itself.
struct Datagrams {
  explicit Datagrams(const Rig& rig) : buffer(rig, 2 * kBytes), qp(rig.make_qp(rig.wanted(IBV_QPT_UD))) {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_INIT;
    a.port_num = 1;
    a.qkey = 5;
    ibv_ah_attr path{};
    path.port_num = 1;
    path.is_global = 1;
    path.grh.dgid = rig.gid(1);
    path.grh.sgid_index = 1;
    path.grh.hop_limit = 1;
    handle.reset(ibv_create_ah(rig.pd.get(), &path));
    bool is_ready = qp != nullptr && handle != nullptr &&
                    ibv_modify_qp(qp.get(), &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) == 0;
    a.qp_state = IBV_QPS_RTR;
    is_ready = is_ready && ibv_modify_qp(qp.get(), &a, IBV_QP_STATE) == 0;
    a.qp_state = IBV_QPS_RTS;
    if (!is_ready || ibv_modify_qp(qp.get(), &a, IBV_QP_STATE | IBV_QP_SQ_PSN) != 0) {
      throw std::runtime_error("no queue pair for datagrams");
    }
  }
  int send() const {
    ibv_sge piece = buffer.piece(16);
    ibv_send_wr wr{};
    wr.sg_list = &piece;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.wr.ud.ah = handle.get();
    wr.wr.ud.remote_qpn = qp->qp_num;
    wr.wr.ud.remote_qkey = 5;
    ibv_send_wr* bad = nullptr;
    return ibv_post_send(qp.get(), &wr, &bad);
  }
  Buffer buffer;
  Held<ibv_qp> qp;
  Held<ibv_ah> handle;
};

TEST(StateFault, ticks_without_a_datagram_wake_nobody) {
  const Faults faults("coalesce after 500ms every 200ms");
  const Rig rig("roce");
  const Datagrams datagrams(rig);
  const auto look_for = [&](milliseconds time) {  // as a program does that waits for something
    ibv_wc wc{};
    for (const auto began = Clock::now(); Clock::now() - began < time;) {
      EXPECT_EQ(ibv_poll_cq(rig.cq.get(), 1, &wc), 0);
    }
  };
  const auto arrival = [&] {  // the time that one takes
    const auto began = Clock::now();
    EXPECT_EQ(post_receive(datagrams.qp.get(), datagrams.buffer.piece(kBytes, kBytes)), 0);
    EXPECT_EQ(datagrams.send(), 0);
    EXPECT_EQ(poll(rig.cq.get(), 2).size(), 2U);
    return Clock::now() - began;
  };
  look_for(milliseconds(550));  // it falls asleep
  arrival();                    // at a tick
  look_for(milliseconds(300));  // with one tick in between
  EXPECT_GE(arrival(), milliseconds(30));
}

TEST(LookFault, gives_the_gid_table_another_order) {
  const Rig plain("apple");
  const Faults faults("gid-shuffle seed 3");
  const Rig rig("apple");
  int moved = 0;
  for (int i = 0; i < 3; ++i) {
    moved += std::memcmp(plain.gid(i).raw, rig.gid(i).raw, 16) != 0 ? 1 : 0;
  }
  EXPECT_GE(moved, 2);
}

TEST(LookFault, empties_the_gid_table) {
  const Faults faults("gid-empty");
  const Rig rig("apple");
  const Held<ibv_qp> qp = rig.make_qp();
  ASSERT_EQ(to_init(qp.get()), 0);
  EXPECT_EQ(to_rtr(qp.get(), qp->qp_num, ibv_gid{}, 1), ENODATA);
}

TEST(LookFault, renames_the_device) {
  const Faults faults("rename-devices seed 4");
  const Rig rig("roce");
  EXPECT_STREQ(ibv_get_device_name(rig.context->device), "rdma_lo5");
}

}  // namespace
}  // namespace ringbolt::profiles
