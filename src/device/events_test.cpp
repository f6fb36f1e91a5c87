#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "device/async_events.h"
#include "device/completion_channel.h"
#include "device/device_test_support.h"

namespace ringbolt::device {
namespace {

// Who takes an event and who destroys the object that it names may be two threads. The taker's note comes first, or the
// event is not taken at all.
constexpr int kYields = 100;  // enough for the other thread to return from forget(), if it could

TEST(CompletionChannel, takes_note_before_a_queue_is_forgotten) {
  static CompletionChannel* channel;
  static std::atomic<bool> is_forgotten;
  static bool was_forgotten_first;
  static std::thread destroyer;
  is_forgotten = was_forgotten_first = false;  // of a run before, with --gtest_repeat
  DeviceUnderTest device;
  CompletionChannel one(device.process().wakes());
  channel = &one;
  const auto queue = *CompletionQueue::create(device.context(), 1, nullptr);
  one.push(queue.get());
  CompletionQueue* taken = nullptr;
  ASSERT_EQ(one.take(taken,
                     [](CompletionQueue& noted) {
                       destroyer = std::thread([&noted] {
                         channel->forget(&noted);
                         is_forgotten = true;
                       });
                       for (int i = 0; i < kYields; ++i) {
                         std::this_thread::yield();
                       }
                       was_forgotten_first = is_forgotten;
                     }),
            0);
  destroyer.join();
  EXPECT_EQ(taken, queue.get());
  EXPECT_FALSE(was_forgotten_first);
  EXPECT_TRUE(is_forgotten);
  device.process().remove(*queue);
  queue->retire();
}

TEST(AsyncEvents, takes_note_before_an_object_is_forgotten) {
  static AsyncEvents* events;
  static std::atomic<bool> is_forgotten;
  static bool was_forgotten_first;
  static std::thread destroyer;
  is_forgotten = was_forgotten_first = false;  // of a run before, with --gtest_repeat
  AsyncEvents one;
  events = &one;
  ibv_qp qp{};
  ibv_async_event pushed{};
  pushed.event_type = IBV_EVENT_QP_FATAL;
  pushed.element.qp = &qp;
  one.push(pushed);
  ibv_async_event taken{};
  ASSERT_EQ(one.take(taken,
                     [](ibv_async_event& noted) {
                       destroyer = std::thread([&noted] {
                         events->forget(noted.element.qp);
                         is_forgotten = true;
                       });
                       for (int i = 0; i < kYields; ++i) {
                         std::this_thread::yield();
                       }
                       was_forgotten_first = is_forgotten;
                     }),
            0);
  destroyer.join();
  EXPECT_EQ(taken.element.qp, &qp);
  EXPECT_FALSE(was_forgotten_first);
  EXPECT_TRUE(is_forgotten);
}

ibv_async_event event_of(ibv_event_type type, ibv_qp* qp) {
  ibv_async_event event{};
  event.event_type = type;
  event.element.qp = qp;
  return event;
}

TEST(AsyncEvents, late_ones_come_when_they_are_due_and_in_their_order) {
  AsyncEvents events;
  ibv_qp qp{};
  events.push_late(event_of(IBV_EVENT_COMM_EST, &qp), 200);
  events.push_late(event_of(IBV_EVENT_QP_FATAL, &qp), 100);
  EXPECT_EQ(events.release_late(199), 200U);
  EXPECT_EQ(events.release_late(200), UINT64_MAX);
  for (const ibv_event_type type : {IBV_EVENT_COMM_EST, IBV_EVENT_QP_FATAL}) {
    ibv_async_event taken{};
    ASSERT_EQ(events.take(taken, [](ibv_async_event&) {}), 0);
    EXPECT_EQ(taken.event_type, type);
  }
}

TEST(AsyncEvents, late_ones_are_forgotten_with_their_object) {
  AsyncEvents events;
  ibv_qp gone{};
  ibv_qp other{};
  events.push_late(event_of(IBV_EVENT_QP_FATAL, &gone), 100);
  events.push_late(event_of(IBV_EVENT_QP_FATAL, &other), 100);
  events.forget(&gone);
  EXPECT_EQ(events.release_late(100), UINT64_MAX);
  ibv_async_event taken{};
  ASSERT_EQ(events.take(taken, [](ibv_async_event&) {}), 0);
  EXPECT_EQ(taken.element.qp, &other);
}

}  // namespace
}  // namespace ringbolt::device
