#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "device/part_test_support.h"

namespace ringbolt::device {

/// A send queue with quirks over a transport of the test's.
class SendQuirksTest : public testing::Test {
 protected:
  static constexpr uint32_t kFrame = 4096;

  /// `depth`: in requests, or in frames where the profile counts those.
  void begin(const std::string& like, const std::string& faults, ibv_qp_type type, uint32_t depth = 4,
             bool signals_all = true) {
    queue_.reset();
    own_.reset();
    data_.reset();
    device_.reset();  // it leaves the environment as it was, for the next one
    device_ = std::make_unique<DeviceUnderTest>(like, faults);
    data_ = std::make_unique<Memory>(device_->pd(), 16 * kFrame, IBV_ACCESS_LOCAL_WRITE);
    data_->fill(1);
    own_ = std::make_unique<CoreUnderTest>(*device_, type);
    queue_ = std::make_unique<SendQueue>(own_->core, SendQueue::Limits{depth, 4, 32, signals_all},
                                         SendQuirks::slots(own_->core, depth), SendQuirks::create(own_->core));
  }
  QueuePairCore& core() { return own_->core; }
  FakeTransport& transport() { return own_->transport; }
  Ends progress_and_poll() {
    {
      const base::LockGuard guard(own_->sends->lock);
      queue_->progress(*own_->sends);
    }
    return ends_of(poll_all(*own_->sends));
  }
  int post(ibv_send_wr wr) {
    bad_ = nullptr;
    return queue_->post(&wr, &bad_);
  }
  int send(uint64_t id, size_t length = 8, unsigned flags = 0) {
    ibv_sge piece = data_->piece(0, length);
    return post(End::request(IBV_WR_SEND, id, &piece, flags));
  }
  std::string bytes(size_t length) { return {reinterpret_cast<const char*>(data_->data()), length}; }
  /// Polls until something is there.
  Ends await() {
    const uint64_t deadline = base::now_ns() + 20'000'000'000;
    Ends ends = progress_and_poll();
    while (ends.empty() && base::now_ns() < deadline) {
      ends = progress_and_poll();
    }
    return ends;
  }

  std::unique_ptr<DeviceUnderTest> device_;
  std::unique_ptr<Memory> data_;
  std::unique_ptr<CoreUnderTest> own_;
  std::unique_ptr<SendQueue> queue_;
  ibv_send_wr* bad_ = nullptr;
};

}  // namespace ringbolt::device
