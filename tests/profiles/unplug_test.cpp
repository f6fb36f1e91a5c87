// A pulled cable, in each of the ways in which devices were seen to take it.
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <csignal>

#include "rig.h"

namespace ringbolt::profiles {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
constexpr size_t kBytes = 4096;

/// The next event of the device in time; nothing for none.
std::vector<ibv_event_type> next_event(const Rig& rig, milliseconds patience) {
  pollfd ready{rig.context->async_fd, POLLIN, 0};
  ibv_async_event event{};
  if (::poll(&ready, 1, static_cast<int>(patience.count())) != 1 ||
      ibv_get_async_event(rig.context.get(), &event) != 0) {
    return {};
  }
  ibv_ack_async_event(&event);
  return {event.event_type};
}

ibv_qp_state state_of(ibv_qp* qp) {
  ibv_qp_attr attributes{};
  ibv_qp_init_attr init{};
  ibv_query_qp(qp, &attributes, IBV_QP_STATE, &init);
  return attributes.qp_state;
}

TEST(UnplugFault, hangs_without_a_word_and_delivers_when_it_is_restored) {
  const Faults faults("unplug mode hang restore 250ms");
  const Rig rig("apple");
  const Buffer buffer(rig, 2 * kBytes);
  const Pair pair(rig);
  const auto began = Clock::now();
  ASSERT_EQ(post_receive(pair.b.get(), buffer.piece(kBytes, kBytes)), 0);
  ASSERT_EQ(post_send(pair.a.get(), buffer.piece(kBytes)), 0);
  const auto sent = poll(rig.cq.get(), 1);
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].opcode, IBV_WC_SEND);  // it has left the queue, and that is all that it says
  EXPECT_EQ(rig.port().state, IBV_PORT_ACTIVE);
  const auto received = poll(rig.cq.get(), 1);
  ASSERT_EQ(received.size(), 1U);
  EXPECT_EQ(received[0].opcode, IBV_WC_RECV);
  EXPECT_GE(Clock::now() - began, milliseconds(150));
  EXPECT_TRUE(next_event(rig, milliseconds(0)).empty());
}

TEST(UnplugFault, ends_reliable_queue_pairs_by_their_own_retries_while_it_hangs) {
  const Faults faults("unplug mode hang");
  const Rig rig("roce");
  const Buffer buffer(rig, kBytes);
  const Pair pair(rig, rig.wanted(IBV_QPT_RC));
  ASSERT_EQ(post_send(pair.a.get(), buffer.piece(kBytes)), 0);
  const auto all = poll(rig.cq.get(), 1);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_TRUE(next_event(rig, milliseconds(0)).empty());
}

TEST(UnplugFault, takes_the_port_down_and_up_with_an_event_each) {
  // Time enough to set up before, on a busy machine and under a sanitizer too.
  const Faults faults("unplug mode port-event time 2000ms- restore 1000ms");
  const Rig rig("roce");
  const Buffer buffer(rig, 2 * kBytes);
  const Pair pair(rig);
  EXPECT_EQ(next_event(rig, milliseconds(5000)), std::vector{IBV_EVENT_PORT_ERR});
  EXPECT_EQ(rig.port().state, IBV_PORT_DOWN);
  EXPECT_EQ(next_event(rig, milliseconds(5000)), std::vector{IBV_EVENT_PORT_ACTIVE});
  EXPECT_EQ(rig.port().state, IBV_PORT_ACTIVE);
  EXPECT_EQ(state_of(pair.a.get()), IBV_QPS_RTS);  // as it was, and goes on
  ASSERT_EQ(post_receive(pair.b.get(), buffer.piece(kBytes, kBytes)), 0);
  ASSERT_EQ(post_send(pair.a.get(), buffer.piece(kBytes)), 0);
  EXPECT_EQ(poll(rig.cq.get(), 2).size(), 2U);
}

TEST(UnplugFault, leaves_a_device_that_can_be_opened_and_gives_no_domain) {
  const Faults faults("unplug mode port-event restore 300ms");
  const Rig rig("apple");
  ASSERT_NE(rig.context, nullptr);
  EXPECT_EQ(rig.port().state, IBV_PORT_DOWN);
  EXPECT_EQ(rig.pd, nullptr);
  errno = 0;
  EXPECT_EQ(ibv_alloc_pd(rig.context.get()), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(next_event(rig, milliseconds(5000)), std::vector{IBV_EVENT_PORT_ACTIVE});
  EXPECT_NE(Held<ibv_pd>(ibv_alloc_pd(rig.context.get())), nullptr);
}

TEST(UnplugFault, flushes_all_that_is_connected_and_a_new_connection_works_when_it_is_restored) {
  for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC}) {
    const Faults faults("unplug mode flush time 300ms- restore 200ms");
    const Rig rig("roce");
    const Buffer buffer(rig, 2 * kBytes);
    const Pair pair(rig, rig.wanted(type));
    const Held<ibv_qp> unconnected = rig.make_qp(rig.wanted(type));
    ASSERT_EQ(to_init(unconnected.get()), 0);
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(post_receive(pair.a.get(), buffer.piece(kBytes, kBytes)), 0);
    }
    const auto flushed = poll(rig.cq.get(), 3);
    EXPECT_EQ(std::ranges::count(flushed, IBV_WC_WR_FLUSH_ERR, &ibv_wc::status), 3);
    EXPECT_EQ(next_event(rig, milliseconds(5000)), std::vector{IBV_EVENT_PORT_ERR});
    EXPECT_EQ(state_of(pair.a.get()), IBV_QPS_ERR);
    EXPECT_EQ(state_of(pair.b.get()), IBV_QPS_ERR);
    EXPECT_EQ(state_of(unconnected.get()), IBV_QPS_INIT);
    ASSERT_EQ(post_send(pair.a.get(), buffer.piece(kBytes)), 0);  // and what is posted now
    const auto late = poll(rig.cq.get(), 1);
    ASSERT_EQ(late.size(), 1U);
    EXPECT_EQ(late[0].status, IBV_WC_WR_FLUSH_ERR);
    EXPECT_EQ(next_event(rig, milliseconds(5000)), std::vector{IBV_EVENT_PORT_ACTIVE});
    const Pair next(rig, rig.wanted(type));
    ASSERT_EQ(post_receive(next.b.get(), buffer.piece(kBytes, kBytes)), 0);
    ASSERT_EQ(post_send(next.a.get(), buffer.piece(kBytes)), 0);
    for (const ibv_wc& wc : poll(rig.cq.get(), 2)) {
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
    }
  }
}

void post_on_a_pulled_cable() {
  const Faults faults("unplug mode abort time 200ms-");
  const Rig rig("apple");
  const Buffer buffer(rig, kBytes);
  const Pair pair(rig);
  if (post_receive(pair.a.get(), buffer.piece(kBytes)) != 0) {  // the cable is in
    _exit(1);
  }
  const conformance::Deadline deadline(std::chrono::seconds(10));
  while (rig.port().state == IBV_PORT_ACTIVE && !deadline.has_passed()) {
  }
  if (post_send(pair.a.get(), buffer.piece(64)) == 0) {  // only receives end it
    post_receive(pair.a.get(), buffer.piece(kBytes));
  }
  _exit(2);
}

TEST(UnplugFault, ends_the_program_that_posts_a_receive) {
  EXPECT_EXIT(post_on_a_pulled_cable(), testing::KilledBySignal(SIGABRT), "unplug mode abort.*ibv_post_recv");
}

}  // namespace
}  // namespace ringbolt::profiles
