#include "device/receive_ring.h"

#include <gtest/gtest.h>

namespace ringbolt::device {
namespace {

ibv_recv_wr request(uint64_t id, ibv_sge* pieces, int count) {
  ibv_recv_wr wr{};
  wr.wr_id = id;
  wr.sg_list = pieces;
  wr.num_sge = count;
  return wr;
}

TEST(ReceiveRing, is_first_in_first_out_over_many_laps) {
  ReceiveRing ring(3, 2);
  for (uint64_t i = 0; i < 20; ++i) {
    ibv_sge pieces[2] = {{i, 1, 0}, {i + 100, 2, 0}};
    ASSERT_EQ(ring.push(request(i, pieces, 2)), 0);
    ASSERT_EQ(ring.front().wr_id, i);
    ASSERT_EQ(ring.front().pieces.size(), 2U);
    EXPECT_EQ(ring.front().pieces[1].addr, i + 100);
    ring.pop();
  }
  EXPECT_TRUE(ring.is_empty());
}

TEST(ReceiveRing, takes_as_many_as_it_is_deep_and_not_one_more) {
  ReceiveRing ring(2, 1);
  EXPECT_EQ(ring.push(request(1, nullptr, 0)), 0);
  EXPECT_EQ(ring.push(request(2, nullptr, 0)), 0);
  EXPECT_EQ(ring.push(request(3, nullptr, 0)), ENOMEM);
  ring.pop();
  EXPECT_EQ(ring.push(request(3, nullptr, 0)), 0);
}

TEST(ReceiveRing, refuses_more_pieces_than_agreed) {
  ReceiveRing ring(2, 1);
  ibv_sge pieces[2] = {};
  EXPECT_EQ(ring.push(request(1, pieces, 2)), EINVAL);
  EXPECT_EQ(ring.push(request(1, pieces, -1)), EINVAL);
  EXPECT_TRUE(ring.is_empty());
}

TEST(ReceiveRing, keeps_what_it_holds_when_resized) {
  ReceiveRing ring(4, 1);
  for (uint64_t i = 0; i < 3; ++i) {
    ibv_sge piece{i, 8, 5};
    ring.push(request(i, &piece, 1));
  }
  EXPECT_EQ(ring.resize(2), EINVAL);
  EXPECT_EQ(ring.resize(16), 0);
  EXPECT_EQ(ring.depth(), 16U);
  for (uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(ring.front().wr_id, i);
    EXPECT_EQ(ring.front().pieces[0].addr, i);
    ring.pop();
  }
}

}  // namespace
}  // namespace ringbolt::device
