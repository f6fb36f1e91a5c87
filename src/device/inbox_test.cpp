#include "device/inbox.h"

#include <gtest/gtest.h>

#include <thread>

namespace ringbolt::device {
namespace {

class InboxTest : public testing::Test {
 protected:
  InboundPacket packet(uint32_t psn, bool is_large = false) {
    InboundPacket made;
    made.view.headers.bth.psn = psn;
    made.buffer = is_large ? large_ : small_;  // what it lies in matters, not what lies there
    return made;
  }
  bool push(uint32_t psn, bool is_large = false) { return inbox_.push(packet(psn, is_large)); }
  /// The number of the first; UINT32_MAX: there is none.
  uint32_t pop() {
    InboundPacket first;
    return inbox_.pop(first) ? first.view.headers.bth.psn : UINT32_MAX;
  }

  std::shared_ptr<link::UdpBufferPool> pool_ = link::UdpBufferPool::make();
  link::UdpBufferRef small_ = pool_->take_small();
  link::UdpBufferRef large_ = pool_->take_large();
  Inbox inbox_;
};

TEST_F(InboxTest, keeps_the_order) {
  EXPECT_TRUE(inbox_.is_empty());
  EXPECT_EQ(pop(), UINT32_MAX);
  for (uint32_t psn = 0; psn < 100; ++psn) {
    ASSERT_TRUE(push(psn));
    ASSERT_TRUE(push(psn + 1000));
    EXPECT_FALSE(inbox_.is_empty());
    EXPECT_EQ(pop(), psn % 2 == 0 ? psn / 2 : psn / 2 + 1000);  // it grows meanwhile
  }
}

TEST_F(InboxTest, takes_so_many_small_packets_and_no_more) {
  for (uint32_t psn = 0; psn < Inbox::kMaxPackets; ++psn) {
    ASSERT_TRUE(push(psn));
  }
  EXPECT_FALSE(push(1));
  EXPECT_EQ(pop(), 0U);
  EXPECT_TRUE(push(1));
}

TEST_F(InboxTest, takes_large_packets_among_the_first_only) {
  for (uint32_t psn = 0; psn < Inbox::kMaxLargePackets; ++psn) {
    ASSERT_TRUE(push(psn, true));
  }
  EXPECT_FALSE(push(1, true));
  EXPECT_TRUE(push(2));
  EXPECT_EQ(pop(), 0U);
  EXPECT_FALSE(push(3, true));  // the small one has its place
  EXPECT_EQ(pop(), 1U);
  EXPECT_TRUE(push(3, true));
}

TEST_F(InboxTest, packet_that_is_not_wanted_stays) {
  ASSERT_TRUE(push(7));
  InboundPacket first;
  EXPECT_FALSE(inbox_.pop_if(first, [](const InboundPacket& one) { return one.view.headers.bth.psn != 7; }));
  EXPECT_TRUE(inbox_.pop_if(first, [](const InboundPacket& one) { return one.view.headers.bth.psn == 7; }));
  EXPECT_EQ(first.view.headers.bth.psn, 7U);
  EXPECT_FALSE(inbox_.pop_if(first, [](const InboundPacket&) { return true; }));
}

TEST_F(InboxTest, gives_buffers_back_with_their_packets) {
  link::UdpBuffer* const used = small_.get();
  ASSERT_TRUE(push(1));
  small_.reset();
  EXPECT_NE(pool_->take_small().get(), used);  // it lies in the inbox still
  inbox_.clear();
  EXPECT_TRUE(inbox_.is_empty());
  EXPECT_EQ(pool_->take_small().get(), used);  // last in, first out
}

TEST_F(InboxTest, one_thread_fills_it_while_another_one_empties_it) {
  constexpr uint32_t kCount = 20'000;
  std::thread filler([this] {
    for (uint32_t psn = 0; psn < kCount;) {
      psn += push(psn) ? 1U : 0U;
    }
  });
  for (uint32_t expected = 0; expected < kCount;) {
    const uint32_t psn = pop();
    if (psn == UINT32_MAX) {
      std::this_thread::yield();
      continue;
    }
    ASSERT_EQ(psn, expected++);
  }
  filler.join();
}

}  // namespace
}  // namespace ringbolt::device
