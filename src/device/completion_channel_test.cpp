#include "device/completion_channel.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <cerrno>
#include <memory>
#include <thread>

#include "device/completion_queue.h"
#include "device/device_test_support.h"

namespace ringbolt::device {
namespace {

class ChannelTest : public testing::Test {
 protected:
  ChannelTest() {
    for (auto& queue : queues_) {
      queue = *CompletionQueue::create(device_.context(), 1, nullptr);
    }
  }
  ~ChannelTest() override {
    for (const auto& queue : queues_) {
      device_.process().remove(*queue);
      queue->retire();
    }
  }
  /// From 1. The channel is not theirs: the test announces them.
  CompletionQueue* queue(size_t number) { return queues_.at(number - 1).get(); }
  int take(CompletionQueue*& taken) {
    return channel_.take(taken, [](CompletionQueue&) {});
  }
  void set_nonblocking() { ASSERT_EQ(fcntl(channel_.descriptor(), F_SETFL, O_NONBLOCK), 0); }
  bool is_readable() {
    pollfd one{channel_.descriptor(), POLLIN, 0};
    return ::poll(&one, 1, 0) == 1;
  }
  DeviceUnderTest device_;
  std::array<std::shared_ptr<CompletionQueue>, 3> queues_;
  CompletionChannel channel_{device_.process().wakes()};
  CompletionQueue* taken_ = nullptr;
};

TEST_F(ChannelTest, gives_announcements_out_in_their_order) {
  EXPECT_FALSE(is_readable());
  channel_.push(queue(1));
  channel_.push(queue(2));
  channel_.push(queue(1));
  for (const size_t expected : {1U, 2U, 1U}) {
    EXPECT_TRUE(is_readable());
    ASSERT_EQ(take(taken_), 0);
    EXPECT_EQ(taken_, queue(expected));
  }
  EXPECT_FALSE(is_readable());
}

TEST_F(ChannelTest, says_again_where_it_must_not_block) {
  set_nonblocking();
  EXPECT_EQ(take(taken_), EAGAIN);
  channel_.push(queue(1));
  EXPECT_EQ(take(taken_), 0);
  EXPECT_EQ(take(taken_), EAGAIN);
}

TEST_F(ChannelTest, blocks_until_something_is_announced) {
  std::thread announcer([this] { channel_.push(queue(3)); });
  EXPECT_EQ(take(taken_), 0);
  EXPECT_EQ(taken_, queue(3));
  announcer.join();
}

TEST_F(ChannelTest, forgets_every_announcement_of_a_queue) {
  set_nonblocking();
  channel_.push(queue(1));
  channel_.push(queue(2));
  channel_.push(queue(1));
  channel_.forget(queue(1));
  ASSERT_EQ(take(taken_), 0);
  EXPECT_EQ(taken_, queue(2));
  EXPECT_EQ(take(taken_), EAGAIN);
  EXPECT_FALSE(is_readable());
}

TEST_F(ChannelTest, serves_two_queues_that_are_armed) {
  DeviceUnderTest device;
  const auto first = *CompletionQueue::create(device.context(), 2, &channel_);
  const auto second = *CompletionQueue::create(device.context(), 2, &channel_);
  first->request_notification(false);
  second->request_notification(false);
  for (const auto& one : {second, first}) {
    const base::LockGuard guard(one->lock);
    one->next() = {};
    one->commit(IBV_WC_SUCCESS, false);
  }
  ASSERT_EQ(take(taken_), 0);
  EXPECT_EQ(taken_, second.get());
  ASSERT_EQ(take(taken_), 0);
  EXPECT_EQ(taken_, first.get());
  EXPECT_FALSE(is_readable());
  for (const auto& one : {first, second}) {
    one->retire();
    device.process().remove(*one);
  }
}

// RINGBOLT_EXPLAIN: of a loop that polls in vain the place is looked up now and then, and whenever it is another one.
TEST(PollWaiters, want_the_place_of_an_empty_poll_that_is_new_and_of_one_in_64) {
  Waiters pollers;
  const int here = 1;
  const int there = 2;
  base::CallSite site;
  site.returns = {11, 12, 13};
  EXPECT_TRUE(pollers.wants_site(0, &here));
  EXPECT_FALSE(pollers.wants_site(1, &here));  // it has found something
  pollers.note(site, &here);
  EXPECT_EQ(pollers.last_site().returns, site.returns);
  int noted = 0;
  constexpr int kPolls = 640;
  for (int i = 1; i < kPolls; ++i) {
    if (pollers.wants_site(0, &here)) {
      ++noted;
      pollers.note(site, &here);
    } else {
      pollers.note_poll(0);
    }
  }
  EXPECT_EQ(noted, kPolls / 64 - 1);
  EXPECT_EQ(pollers.waits.load(), static_cast<uint64_t>(kPolls));
  pollers.note_poll(0);
  EXPECT_TRUE(pollers.wants_site(0, &there));
  EXPECT_EQ(pollers.answers.load(), 0U);
  pollers.note_poll(3);
  pollers.note_poll(-1);  // an overflow is no waiting either
  EXPECT_EQ(pollers.answers.load(), 2U);
}

TEST(AsyncEventsQueue, forgets_the_events_of_one_object_and_keeps_those_of_the_port) {
  AsyncEvents events;
  ibv_qp gone{};
  ibv_qp there{};
  const auto push = [&](ibv_event_type type, ibv_qp* qp) {
    ibv_async_event event{};
    event.event_type = type;
    event.element.qp = qp;
    events.push(event);
  };
  push(IBV_EVENT_QP_FATAL, &gone);
  push(IBV_EVENT_QP_FATAL, &there);
  ibv_async_event port{};
  port.event_type = IBV_EVENT_PORT_ERR;
  port.element.port_num = 1;
  events.push(port);
  push(IBV_EVENT_QP_LAST_WQE_REACHED, &gone);
  events.forget(&gone);
  ASSERT_EQ(fcntl(events.descriptor(), F_SETFL, O_NONBLOCK), 0);
  ibv_async_event taken{};
  ASSERT_EQ(events.take(taken, [](ibv_async_event&) {}), 0);
  EXPECT_EQ(taken.element.qp, &there);
  ASSERT_EQ(events.take(taken, [](ibv_async_event&) {}), 0);
  EXPECT_EQ(taken.event_type, IBV_EVENT_PORT_ERR);
  EXPECT_EQ(events.take(taken, [](ibv_async_event&) {}), EAGAIN);
}

}  // namespace
}  // namespace ringbolt::device
