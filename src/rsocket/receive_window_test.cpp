#include "rsocket/receive_window.h"

#include <gtest/gtest.h>

namespace ringbolt::rsocket {
namespace {

constexpr uint64_t kAddress = 0x7000;
constexpr uint32_t kKey = 0x55;

/// Two halves of eight bytes, and credit for `depth` messages.
ReceiveWindow window(uint16_t depth) { return {{kAddress, kKey, 16}, depth}; }

TEST(ReceiveWindow, offers_its_first_half_with_the_connection_data) {
  EXPECT_EQ(window(8).first_half(), (RemoteBlock{kAddress, kKey, 8}));
}

TEST(ReceiveWindow, grants_its_second_half_at_once) {
  ReceiveWindow in = window(8);
  ASSERT_TRUE(in.is_grant_due());
  const auto grant = in.take_grant();
  EXPECT_EQ(grant.half, (RemoteBlock{kAddress + 8, kKey, 8}));
  EXPECT_EQ(grant.limit, 8U) << "nothing has come: as in the connection data";
  EXPECT_FALSE(in.is_grant_due());
}

TEST(ReceiveWindow, grants_a_half_again_when_all_of_it_was_read) {
  ReceiveWindow in = window(8);
  in.take_grant();
  ASSERT_TRUE(in.take_data(8));
  in.consume(7);
  EXPECT_FALSE(in.is_grant_due());
  in.consume(1);
  ASSERT_TRUE(in.is_grant_due());
  const auto grant = in.take_grant();
  EXPECT_EQ(grant.half, (RemoteBlock{kAddress, kKey, 8}));
  EXPECT_EQ(grant.limit, 9U) << "one message came";
}

TEST(ReceiveWindow, grants_credits_alone_when_half_of_them_are_spent) {
  ReceiveWindow in = window(4);
  in.take_grant();
  ASSERT_TRUE(in.take_data(1));
  EXPECT_FALSE(in.is_grant_due());
  ASSERT_TRUE(in.take_data(1));
  ASSERT_TRUE(in.is_grant_due());
  const auto grant = in.take_grant();
  EXPECT_FALSE(grant.half.has_value());
  EXPECT_EQ(grant.limit, 6U);
  EXPECT_EQ(in.readable(), 2U);
}

TEST(ReceiveWindow, counts_messages_without_data) {
  ReceiveWindow in = window(4);
  in.take_grant();
  in.take_other();
  in.take_other();
  EXPECT_TRUE(in.is_grant_due());
  EXPECT_EQ(in.readable(), 0U);
  EXPECT_EQ(in.take_grant().limit, 6U);
}

TEST(ReceiveWindow, refuses_more_than_it_granted) {
  ReceiveWindow in = window(8);
  EXPECT_FALSE(in.take_data(9)) << "the second half is not granted yet";
  EXPECT_TRUE(in.take_data(8));
  EXPECT_FALSE(in.take_data(1));
  in.take_grant();
  EXPECT_FALSE(in.take_data(9)) << "beyond the half's end";
  EXPECT_TRUE(in.take_data(8));
  EXPECT_FALSE(in.take_data(0xffffffff));
  EXPECT_EQ(in.readable(), 16U);
}

TEST(ReceiveWindow, gives_out_pieces_that_end_with_the_ring) {
  ReceiveWindow in = window(8);
  in.take_grant();
  ASSERT_TRUE(in.take_data(8));
  in.consume(8);
  in.take_grant();
  ASSERT_TRUE(in.take_data(8));
  ASSERT_TRUE(in.take_data(5));
  in.consume(2);  // from 10: six to the end, and five from the front
  EXPECT_EQ(in.next(0, 100).offset, 10U);
  EXPECT_EQ(in.next(0, 100).length, 6U);
  EXPECT_EQ(in.next(0, 4).length, 4U);
  EXPECT_EQ(in.next(6, 100).offset, 0U);
  EXPECT_EQ(in.next(6, 100).length, 5U);
  EXPECT_EQ(in.next(8, 1).offset, 2U);
  EXPECT_EQ(in.next(8, 1).length, 1U);
}

}  // namespace
}  // namespace ringbolt::rsocket
