// Calls of the data path that are refused, and addresses that come and go.
#include <gtest/gtest.h>
#include <poll.h>

#include <vector>

#include "rig.h"

namespace ringbolt::profiles {
namespace {

constexpr size_t kBytes = 64;

TEST(CallFault, refuses_posts_and_names_the_request) {
  const Faults faults(
      "call-errno call post-send errno ENOMEM count 1-1; call-errno call post-recv errno EINVAL count 1-1");
  const Rig rig("roce");
  const Buffer buffer(rig, kBytes);
  const Pair pair(rig, rig.wanted(IBV_QPT_RC));
  ibv_sge piece = buffer.piece(kBytes);
  ibv_send_wr second{};
  second.wr_id = 11;
  second.sg_list = &piece;
  second.num_sge = 1;
  second.opcode = IBV_WR_SEND;
  ibv_send_wr first = second;
  first.wr_id = 10;
  first.next = &second;
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(ibv_post_send(pair.a.get(), &first, &bad), ENOMEM);
  EXPECT_EQ(bad, &second);
  ibv_recv_wr more{};
  more.wr_id = 21;
  more.sg_list = &piece;
  more.num_sge = 1;
  ibv_recv_wr one = more;
  one.wr_id = 20;
  one.next = &more;
  ibv_recv_wr* bad_receive = nullptr;
  EXPECT_EQ(ibv_post_recv(pair.b.get(), &one, &bad_receive), EINVAL);
  EXPECT_EQ(bad_receive, &more);
  const std::vector<ibv_wc> done = poll(rig.cq.get(), 2);  // what was before it was posted
  EXPECT_NE(of(done, 10), nullptr);
  EXPECT_NE(of(done, 20), nullptr);
  EXPECT_EQ(ibv_post_send(pair.a.get(), &second, &bad), 0);
}

TEST(CallFault, refuses_polls_and_regions) {
  const Faults faults("call-errno call poll-cq errno EIO count 1-1; call-errno call reg-mr errno EPERM count 1-1");
  const Rig rig("roce");
  ibv_wc wc{};
  EXPECT_EQ(ibv_poll_cq(rig.cq.get(), 1, &wc), 0);
  errno = 0;
  EXPECT_EQ(ibv_poll_cq(rig.cq.get(), 1, &wc), -1);
  EXPECT_EQ(errno, EIO);
  EXPECT_EQ(ibv_poll_cq(rig.cq.get(), 1, &wc), 0);
  const Buffer first(rig, kBytes);
  EXPECT_NE(first.mr, nullptr);
  errno = 0;
  const Buffer second(rig, kBytes);
  EXPECT_EQ(second.mr, nullptr);
  EXPECT_EQ(errno, EPERM);
}

TEST(CallFault, chooses_the_queue_pair) {
  const Faults faults("call-errno 30% call post-send errno EAGAIN qp 2 seed 5");
  std::vector<std::vector<int>> runs;
  for (int run = 0; run < 2; ++run) {
    const Rig rig("roce");
    const Buffer buffer(rig, kBytes);
    const Pair spared(rig, rig.wanted(IBV_QPT_UC));
    const Pair chosen(rig, rig.wanted(IBV_QPT_UC));
    for (const Pair* pair : {&spared, &chosen}) {
      for (int i = 0; i < 30; ++i) {
        ASSERT_EQ(post_receive(pair->b.get(), buffer.piece(kBytes)), 0);
      }
    }
    const auto send = [&](const Pair& pair) {
      std::vector<int> which;
      for (int i = 0; i < 30; ++i) {
        if (post_send(pair.a.get(), buffer.piece(0)) != 0) {
          which.push_back(i);
        }
      }
      return which;
    };
    EXPECT_TRUE(send(spared).empty());
    runs.push_back(send(chosen));
  }
  EXPECT_GE(runs[0].size(), 3U);
  EXPECT_LE(runs[0].size(), 20U);
  EXPECT_EQ(runs[0], runs[1]);
}

void expect_gid_change(const Rig& rig) {
  pollfd ready{rig.context->async_fd, POLLIN, 0};
  ASSERT_EQ(::poll(&ready, 1, 5000), 1);
  ibv_async_event event{};
  ASSERT_EQ(ibv_get_async_event(rig.context.get(), &event), 0);
  EXPECT_EQ(event.event_type, IBV_EVENT_GID_CHANGE);
  EXPECT_EQ(event.element.port_num, 1);
  ibv_ack_async_event(&event);
}

TEST(StateFault, takes_an_address_away_and_brings_it_back) {
  const Faults faults("gid-change time 100ms-400ms");
  const Rig rig("roce");
  const ibv_gid address = rig.gid(1);
  const ibv_gid other = rig.gid(0);
  const Buffer buffer(rig, 2 * kBytes);
  const Pair connected(rig, rig.wanted(IBV_QPT_RC));
  expect_gid_change(rig);
  const ibv_gid none{};
  const ibv_gid now = rig.gid(1);
  EXPECT_EQ(std::memcmp(&now, &none, sizeof none), 0);
  const ibv_gid still = rig.gid(0);
  EXPECT_EQ(std::memcmp(&still, &other, sizeof other), 0);
  ibv_gid_entry entry{};
  EXPECT_EQ(ibv_query_gid_ex(rig.context.get(), 1, 1, &entry, 0), ENODATA);
  const Held<ibv_qp> late = rig.make_qp();
  ASSERT_EQ(to_init(late.get()), 0);
  EXPECT_EQ(to_rtr(late.get(), late->qp_num, other, 1), EINVAL);
  ASSERT_EQ(post_receive(connected.b.get(), buffer.piece(kBytes, kBytes)), 0);
  ASSERT_EQ(post_send(connected.a.get(), buffer.piece(kBytes)), 0);
  for (const ibv_wc& wc : poll(rig.cq.get(), 2)) {
    EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
  }
  expect_gid_change(rig);
  const ibv_gid back = rig.gid(1);
  EXPECT_EQ(std::memcmp(&back, &address, sizeof address), 0);
}

}  // namespace
}  // namespace ringbolt::profiles
