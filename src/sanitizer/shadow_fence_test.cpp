// Sends from where a READ or a receive before them is to write: fenced, not fenced, and with inline data. InfiniBand
// Architecture Specification 1.4, 10.8.3.3.

#include <sys/mman.h>

#include <array>
#include <cstring>

#include "sanitizer/shadow_test_support.h"

namespace ringbolt::sanitizer {
namespace {

using testing::device;
using testing::Rules;

class ShadowFenceTest : public testing::Shadowed {};

TEST_F(ShadowFenceTest, a_fenced_send_of_what_a_read_brings_is_in_order) {
  // InfiniBand specification, 10.8.3.3: a fenced request waits for the READs and atomics before it.
  for (const bool is_fenced : {true, false}) {
    start();
    write(0, "before");
    send(0, 6, IBV_WR_RDMA_READ);
    send(0, 6, IBV_WR_SEND, IBV_SEND_SIGNALED | (is_fenced ? unsigned{IBV_SEND_FENCE} : 0U));
    EXPECT_EQ(rules(), is_fenced ? Rules{} : Rules{"sent-and-received"});
    device.complete_send(IBV_WC_RDMA_READ, "behind");
    const auto sent = device.sends.front().pieces[0];
    const std::string bytes(reinterpret_cast<const char*>(sent.addr), sent.length);
    if (is_fenced) {
      EXPECT_EQ(bytes, "behind") << "the device gathers it when the READ has brought it";
    }
    device.complete_send();
    poll();
    EXPECT_EQ(text(0, 6), "behind");
    EXPECT_EQ(rules(), Rules{});
  }
}

TEST_F(ShadowFenceTest, a_fenced_send_has_what_it_sends_until_it_is_over) {
  start();
  send(0, 6, IBV_WR_RDMA_READ);
  send(0, 6, IBV_WR_SEND, IBV_SEND_SIGNALED | IBV_SEND_FENCE);
  device.complete_send(IBV_WC_RDMA_READ, "behind");
  ASSERT_EQ(poll(), std::vector<uint64_t>{1});
  EXPECT_EQ(text(0, 6), "behind");
  receive(100, 6);  // into memory of ours as well
  device.receive("later!");
  const auto sent = device.sends.front().pieces[0];
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(sent.addr), sent.length), "behind");
  device.complete_send();
  poll();
  EXPECT_EQ(text(100, 6), "later!");
  EXPECT_EQ(rules(), Rules{});
}

TEST_F(ShadowFenceTest, a_fenced_send_has_what_it_sends_though_another_is_refused) {
  start();
  send(0, 6, IBV_WR_RDMA_READ);
  send(0, 6, IBV_WR_SEND, IBV_SEND_SIGNALED | IBV_SEND_FENCE);
  device.room = 0;
  ASSERT_EQ(send(0, 6, IBV_WR_SEND, IBV_SEND_SIGNALED | IBV_SEND_FENCE), ENOMEM);
  device.room = SIZE_MAX;
  device.complete_send(IBV_WC_RDMA_READ, "behind");
  ASSERT_EQ(poll(), std::vector<uint64_t>{1});
  EXPECT_EQ(text(0, 6), "behind");
  receive(100, 6);  // into memory of ours as well
  device.receive("later!");
  const auto sent = device.sends.front().pieces[0];
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(sent.addr), sent.length), "behind");
  device.complete_send();
  poll();
  EXPECT_EQ(text(100, 6), "later!");
  EXPECT_EQ(rules(), Rules{});
}

TEST_F(ShadowFenceTest, a_fenced_send_is_no_copy_of_what_was_there_at_its_post) {
  start("buffers");  // nothing is held back: the READ goes straight into the program's memory
  write(0, "before");
  send(0, 6, IBV_WR_RDMA_READ);
  send(0, 6, IBV_WR_SEND, IBV_SEND_SIGNALED | IBV_SEND_FENCE);
  device.complete_send(IBV_WC_RDMA_READ, "behind");
  const auto sent = device.sends.front().pieces[0];
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(sent.addr), sent.length), "behind");
  device.complete_send();
  poll();
  EXPECT_EQ(rules(), Rules{}) << "nor was its buffer changed by the program";
}

TEST_F(ShadowFenceTest, inline_data_from_where_something_is_to_come) {
  start();
  constexpr unsigned kInline = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
  send(0, 6, IBV_WR_RDMA_READ);
  send(0, 6, IBV_WR_SEND, kInline | unsigned{IBV_SEND_FENCE});
  EXPECT_EQ(rules(), Rules{"sent-and-received"}) << "a fence comes too late for what the post copies";
  receive(100, 64);
  std::memcpy(memory.data() + 1024, memory.data() + 100, 64);  // copied before it has come
  send(1024, 64, IBV_WR_SEND, kInline);
  EXPECT_EQ(rules(), Rules{"sent-before-received"});
  send(2048, 64, IBV_WR_SEND, kInline);
  EXPECT_EQ(rules(), Rules{});
  ibv_sge endless{1, 1U << 30U, 0};
  ibv_send_wr wr{};
  wr.sg_list = &endless;
  wr.num_sge = 1;
  wr.send_flags = kInline;
  ibv_send_wr* bad = nullptr;
  shadow->post_send(&qp, &wr, &bad, here());  // which a device refuses without a look
}

TEST_F(ShadowFenceTest, inline_data_that_are_not_mapped_are_the_devices_to_judge) {
  start();
  receive(100, 64);  // whose poison is looked for in what is sent
  std::memcpy(memory.data() + 1024, memory.data() + 100, 32);
  void* const page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  ::munmap(page, 4096);
  std::array<ibv_sge, 2> pieces{ibv_sge{reinterpret_cast<uintptr_t>(page), 32, 0}, piece(1024, 32)};
  ibv_send_wr wr{};
  wr.sg_list = pieces.data();
  wr.num_sge = 2;
  wr.send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(shadow->post_send(&qp, &wr, &bad, here()), 0);
  EXPECT_EQ(rules(), Rules{"sent-before-received"}) << "of the piece behind it, which is mapped";
}

}  // namespace
}  // namespace ringbolt::sanitizer
