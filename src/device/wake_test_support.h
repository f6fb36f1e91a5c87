#pragma once

// A completion queue's entry in a wake table of the test's own, its channel, and a peer that knows it: for tests of
// what raises events, without what else a queue does, and without a second process.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include "device/completion_channel.h"
#include "device/completion_queue.h"
#include "device/device_test_support.h"
#include "device/wake_entry.h"
#include "link/peer_queue.h"

namespace ringbolt::device {

/// A wake table, and the same as peers map it. Not thread-safe.
class WakeTableUnderTest {
 public:
  WakeTableUnderTest() {
    EXPECT_TRUE(table.create());
    mapped_ = std::move(*link::SharedSegment::map(base::UniqueFd(dup(table.descriptor())), link::kWakeBytes, true));
  }
  link::WakeMemory& as_mapped() { return *reinterpret_cast<link::WakeMemory*>(mapped_.data()); }

  link::WakeTable table;

 private:
  link::SharedSegment mapped_;
};

/// A completion queue for an entry to announce. It has an entry of its own, which nobody arms. Not thread-safe.
class QueueUnderTest {
 public:
  QueueUnderTest() = default;
  ~QueueUnderTest() {
    device_.process().remove(*queue_);
    queue_->retire();
  }
  QueueUnderTest(const QueueUnderTest&) = delete;
  QueueUnderTest& operator=(const QueueUnderTest&) = delete;
  CompletionQueue* get() { return queue_.get(); }
  /// Ends before the queue does, as far as a channel can see. Owns nothing.
  std::shared_ptr<CompletionQueue> owner() { return {std::make_shared<int>(0), get()}; }

 private:
  DeviceUnderTest device_;
  std::shared_ptr<CompletionQueue> queue_ = *CompletionQueue::create(device_.context(), 1, nullptr);
};

/// Not thread-safe.
class WakeEntryTest : public testing::Test {
 protected:
  WakeEntryTest() {
    EXPECT_EQ(fcntl(channel_->descriptor(), F_SETFL, O_NONBLOCK), 0);
    entry_->join_channel(owner_);
  }

  /// As a peer sees the queue that has this name.
  link::PeerQueue peer_of(link::WakeName name) {
    return {wakes_.as_mapped(), name, std::make_shared<const base::UniqueFd>(dup(channel_->descriptor()))};
  }
  bool is_readable() {
    pollfd one{channel_->descriptor(), POLLIN, 0};
    return ::poll(&one, 1, 0) == 1;
  }
  /// Takes the events that wait, all of them of the queue: their number.
  int events() {
    int count = 0;
    for (CompletionQueue* taken = nullptr; channel_->take(taken, [](CompletionQueue&) {}) == 0; ++count) {
      EXPECT_EQ(taken, queue_.get());
    }
    return count;
  }

  WakeTableUnderTest wakes_;
  QueueUnderTest queue_;
  std::unique_ptr<CompletionChannel> channel_ = std::make_unique<CompletionChannel>(wakes_.table);
  std::shared_ptr<CompletionQueue> owner_ = queue_.owner();
  std::unique_ptr<WakeEntry> entry_ = std::make_unique<WakeEntry>(wakes_.table, channel_.get(), queue_.get());
  link::PeerQueue peer_ = peer_of(entry_->name());
};

}  // namespace ringbolt::device
