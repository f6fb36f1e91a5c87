// Messages that are not copied: base/in_place.h.
#include "base/in_place.h"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include "verbs/queue_pair.h"
#include "verbs/soft_device_test_support.h"

namespace ringbolt::verbs {
namespace {

using test::Device;

constexpr size_t kHalf = 32768;

/// Two connected queue pairs of one device, and memory whose first half is sent from and whose second is received into.
struct Pair {
  explicit Pair(const Device& on) : device(on), slab(*device.pd, 2 * kHalf), region(*device.pd, slab.bytes()) {
    UnconnectedQueuePair left(*device.pd, device.plan(IBV_QPT_UC));
    UnconnectedQueuePair right(*device.pd, device.plan(IBV_QPT_UC));
    const Peer end_of_left = device.end(left);
    const Peer end_of_right = device.end(right);
    a.emplace(std::move(left).connect(Device::path(), end_of_right));
    b.emplace(std::move(right).connect(Device::path(), end_of_left));
  }

  /// The completion of the receive of `length` bytes of 42.
  ibv_wc transfer(size_t length, unsigned send_flags = base::kStaysInPlace, ibv_wr_opcode opcode = IBV_WR_SEND) const {
    std::memset(slab.bytes().data(), 42, length);
    std::memset(slab.bytes().data() + kHalf, 0, kHalf);
    ibv_sge to = region.piece(kHalf, kHalf);
    ibv_recv_wr receive{};
    receive.sg_list = &to;
    receive.num_sge = 1;
    EXPECT_EQ(b->post_receive(receive), 0);
    ibv_sge from = region.piece(0, length);
    ibv_send_wr send{};
    send.sg_list = &from;
    send.num_sge = 1;
    send.opcode = opcode;
    send.imm_data = 77;
    send.send_flags = send_flags;
    EXPECT_EQ(a->post_send(send), 0);
    return device.wait_for_one();
  }

  const Device& device;
  Slab slab;
  MemoryRegion region;
  std::optional<QueuePair> a;
  std::optional<QueuePair> b;
};

TEST(VerbsInPlace, a_receive_says_where_the_message_lies) {
  const Device device;
  const Pair pair(device);
  EXPECT_EQ(pair.transfer(8192).wc_flags & base::kReceivedInPlace, 0U);  // nobody has asked for it
  EXPECT_EQ(pair.slab.bytes()[kHalf + 8191], std::byte{42});
  ASSERT_TRUE(pair.b->receive_in_place());
  EXPECT_EQ(pair.transfer(8192, 0).wc_flags & base::kReceivedInPlace, 0U);  // its sender has not agreed
  const ibv_wc completion = pair.transfer(8192);
  ASSERT_EQ(completion.status, IBV_WC_SUCCESS);
  ASSERT_NE(completion.wc_flags & base::kReceivedInPlace, 0U);
  EXPECT_EQ(completion.byte_len, 8192U);
  const std::byte* data = base::place_in(completion);
  EXPECT_EQ(data[0], std::byte{42});
  EXPECT_EQ(data[8191], std::byte{42});
  pair.slab.bytes()[8191] = std::byte{43};  // it is the sender's own memory
  EXPECT_EQ(data[8191], std::byte{43});
  EXPECT_EQ(pair.slab.bytes()[kHalf + 8191], std::byte{0});
}

TEST(VerbsInPlace, a_receive_keeps_the_head_of_the_message_as_it_was) {
  const Device device;
  const Pair pair(device);
  ASSERT_TRUE(pair.b->receive_in_place());
  ASSERT_NE(pair.transfer(8192).wc_flags & base::kReceivedInPlace, 0U);
  std::memset(pair.slab.bytes().data(), 43, 8192);  // another header, for another way
  const std::byte* head = pair.slab.bytes().data() + kHalf;
  for (size_t i = 0; i < base::kHeadBytes; ++i) {
    EXPECT_EQ(head[i], std::byte{42}) << i;
  }
  EXPECT_EQ(head[base::kHeadBytes], std::byte{0});
}

TEST(VerbsInPlace, a_message_with_an_immediate_needs_the_fields_for_it) {
  const Device device;
  const Pair pair(device);
  ASSERT_TRUE(pair.b->receive_in_place());
  const ibv_wc completion = pair.transfer(8192, base::kStaysInPlace, IBV_WR_SEND_WITH_IMM);
  EXPECT_EQ(completion.wc_flags & base::kReceivedInPlace, 0U);
  EXPECT_EQ(completion.imm_data, 77U);
  EXPECT_EQ(pair.slab.bytes()[kHalf + 8191], std::byte{42});
}

TEST(VerbsInPlace, short_messages_are_copied_all_the_same) {
  const Device device;
  const Pair pair(device);
  ASSERT_TRUE(pair.b->receive_in_place());
  for (const size_t length : {size_t{8}, size_t{100}, size_t{1000}}) {
    EXPECT_EQ(pair.transfer(length).wc_flags & base::kReceivedInPlace, 0U);
    EXPECT_EQ(pair.slab.bytes()[kHalf + length - 1], std::byte{42});
  }
}

TEST(VerbsInPlace, a_profile_that_takes_something_away_does_not_offer_it) {
  const Device device("tn3205");
  UnconnectedQueuePair left(*device.pd, device.plan(IBV_QPT_UC));
  UnconnectedQueuePair right(*device.pd, device.plan(IBV_QPT_UC));
  const Peer peer = device.end(right);
  EXPECT_FALSE(std::move(left).connect(Device::path(), peer).receive_in_place());
}

}  // namespace
}  // namespace ringbolt::verbs
