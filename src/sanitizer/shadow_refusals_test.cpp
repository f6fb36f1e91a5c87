// Requests that the device refuses, or fails for want of a right: the program sees what it would see without us.

#include <array>

#include "sanitizer/shadow_test_support.h"

namespace ringbolt::sanitizer {
namespace {

using testing::device;
using testing::Rules;

class ShadowRefusalTest : public testing::Shadowed {};

TEST_F(ShadowRefusalTest, who_refuses_a_request_is_passed_on_with_the_programs_own) {
  start();
  write(100, "untouched");
  std::array<ibv_sge, 3> pieces{piece(0, 8), piece(100, 9), piece(200, 8)};
  std::array<ibv_recv_wr, 3> list{};
  for (size_t i = 0; i < list.size(); ++i) {
    list[i].wr_id = 10 + i;
    list[i].sg_list = &pieces[i];
    list[i].num_sge = 1;
    list[i].next = i + 1 < list.size() ? &list[i + 1] : nullptr;
  }
  device.room = 1;
  ibv_recv_wr* bad = nullptr;
  EXPECT_EQ(shadow->post_receive(&qp, list.data(), &bad, here()), ENOMEM);
  EXPECT_EQ(bad, &list[1]);
  EXPECT_EQ(device.posts, 1U) << "a device that names it gets the list as it is";
  EXPECT_EQ(text(100, 9), "untouched") << "what was never posted is the program's";
  device.receive("received");
  EXPECT_EQ(poll(), std::vector<uint64_t>{10});
  EXPECT_EQ(text(0, 8), "received");
  device.room = SIZE_MAX;
  EXPECT_EQ(receive(100, 9), 0);
  EXPECT_EQ(rules(), Rules{}) << "the refused ones are under way nowhere";
}

TEST_F(ShadowRefusalTest, receives_that_are_refused_need_no_bad_wr) {
  start();
  ibv_sge one = piece(0, 64);
  ibv_recv_wr wr{};
  wr.sg_list = &one;
  wr.num_sge = 1;
  device.room = 0;
  EXPECT_EQ(shadow->post_receive(&qp, &wr, nullptr, here()), ENOMEM);
  device.room = SIZE_MAX;
}

TEST_F(ShadowRefusalTest, refusals_without_a_name_leave_the_programs_pointer_alone) {
  // As the driver of a Mac was seen to refuse: a negated errno, and bad_wr untouched (docs/profiles.md).
  device.names_refused = false;
  start();
  std::array<ibv_sge, 2> pieces{piece(0, 8), piece(100, 8)};
  std::array<ibv_recv_wr, 2> receives{};
  std::array<ibv_send_wr, 2> sends{};
  for (size_t i = 0; i < 2; ++i) {
    receives[i] = {10 + i, i == 0 ? &receives[1] : nullptr, &pieces[i], 1};
    sends[i].wr_id = 20 + i;
    sends[i].next = i == 0 ? &sends[1] : nullptr;
    sends[i].sg_list = &pieces[i];
    sends[i].num_sge = 1;
    sends[i].send_flags = IBV_SEND_SIGNALED;
  }
  auto* const never = reinterpret_cast<ibv_recv_wr*>(8);
  ibv_recv_wr* bad_receive = never;
  device.room = 1;
  EXPECT_EQ(shadow->post_receive(&qp, receives.data(), &bad_receive, here()), -ENOMEM);
  EXPECT_EQ(bad_receive, never);
  EXPECT_EQ(text(100, 8), std::string(8, '\0')) << "what was never posted is the program's";
  device.receive("received");
  EXPECT_EQ(poll(), std::vector<uint64_t>{10});
  EXPECT_EQ(text(0, 8), "received") << "one was taken, and has what came for it";
  auto* const none = reinterpret_cast<ibv_send_wr*>(8);
  ibv_send_wr* bad_send = none;
  device.room = 1;
  EXPECT_EQ(shadow->post_send(&qp, sends.data(), &bad_send, here()), -ENOMEM);
  EXPECT_EQ(bad_send, none);
  write(0, "changed!");
  device.complete_send();
  EXPECT_EQ(poll(), std::vector<uint64_t>{20}) << "one was taken, and completes under the program's number";
  EXPECT_EQ(rules(), Rules{"send-buffer-changed"}) << "and is looked after until then";
  device.room = SIZE_MAX;
  device.posts = 0;
  EXPECT_EQ(shadow->post_send(&qp, sends.data(), nullptr, here()), 0);
  EXPECT_EQ(device.posts, 1U) << "what is to be taken whole or not at all is one list";
}

TEST_F(ShadowRefusalTest, requests_without_sound_memory_are_the_devices_to_judge) {
  start();
  ibv_sge foreign = piece(0, 8);
  foreign.lkey = 1;
  ibv_sge beyond = piece(kMemoryBytes - 4, 8);
  ibv_sge endless = piece(8, UINT32_MAX);
  ibv_sge before = piece(0, 8);
  before.addr -= 1;
  for (ibv_sge* one : {&foreign, &beyond, &endless, &before}) {
    ibv_recv_wr wr{};
    wr.sg_list = one;
    wr.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    EXPECT_EQ(shadow->post_receive(&qp, &wr, &bad, here()), 0);
    EXPECT_EQ(device.receives.back().pieces[0].addr, one->addr) << "as the program posted it";
  }
  EXPECT_TRUE(std::ranges::all_of(memory, [](std::byte each) { return each == std::byte{0}; }));
  EXPECT_EQ(rules(), Rules{});
}

TEST_F(ShadowRefusalTest, what_comes_for_a_region_that_is_not_writable_is_the_devices_to_refuse) {
  start();
  shadow->region_changed(mr, false, IBV_ACCESS_REMOTE_READ);
  send(0, 8, IBV_WR_RDMA_READ);
  EXPECT_EQ(device.sends.back().pieces[0].lkey, kLkey) << "by the program's key: the device must see that it may not";
  EXPECT_EQ(text(0, 8), std::string(8, '\0'));
  device.complete_send(IBV_WC_RDMA_READ, "", IBV_WC_LOC_PROT_ERR);
  EXPECT_EQ(rules(), Rules{}) << "nobody knows yet";
  poll();
  EXPECT_EQ(rules(), Rules{"region-not-writable"});
  start();
  shadow->region_changed(mr, false, IBV_ACCESS_REMOTE_READ);
  receive(0, 8);
  EXPECT_EQ(device.receives.back().pieces[0].lkey, kLkey);
  device.receive("", IBV_WC_WR_FLUSH_ERR);
  poll();
  EXPECT_EQ(rules(), Rules{}) << "it was never written to";
  receive(0, 8);
  device.receive("", IBV_WC_LOC_PROT_ERR);
  poll();
  EXPECT_EQ(rules(), (Rules{"posted-after-failure", "region-not-writable"}));
  send(0, 8);
  device.complete_send(IBV_WC_SEND, "", IBV_WC_LOC_PROT_ERR);
  poll();
  EXPECT_EQ(rules(), Rules{"posted-after-failure"}) << "what is sent is only read";
}

}  // namespace
}  // namespace ringbolt::sanitizer
