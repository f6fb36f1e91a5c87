#pragma once

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "device/part_test_support.h"

namespace ringbolt::device {

/// A send queue over a transport of the test's.
class SendQueueTest : public testing::Test {
 protected:
  static constexpr SendQueue::Limits kLimits{4, 3, 32, false};

  /// `slots` is a power of two.
  void begin(ibv_qp_type type = IBV_QPT_RC, const SendQueue::Limits& limits = kLimits, size_t slots = 4,
             uint32_t cqe = 64) {
    queue_.reset();
    own_ = std::make_unique<CoreUnderTest>(device_, type, cqe);
    queue_ = std::make_unique<SendQueue>(own_->core, limits, slots, nullptr);
  }
  QueuePairCore& core() { return own_->core; }
  FakeTransport& transport() { return own_->transport; }
  void progress() {
    const base::LockGuard guard(own_->sends->lock);
    queue_->progress(*own_->sends);
  }
  Ends progress_and_poll() {
    progress();
    return ends_of(poll_all(*own_->sends));
  }
  int post(ibv_send_wr wr) {
    ibv_send_wr* bad = nullptr;
    const int error = queue_->post(&wr, &bad);
    EXPECT_EQ(bad, error == 0 ? nullptr : &wr);
    return error;
  }
  int send(uint64_t id, unsigned flags = IBV_SEND_SIGNALED) {
    return post(End::request(IBV_WR_SEND, id, &piece_, flags));
  }
  /// Every request leads to the next.
  template <size_t Count>
  static void chain(std::array<ibv_send_wr, Count>& list) {
    for (size_t i = 0; i + 1 < Count; ++i) {
      list[i].next = &list[i + 1];
    }
  }
  template <size_t Count>
  std::array<ibv_send_wr, Count> sends_from(uint64_t first_id) {
    std::array<ibv_send_wr, Count> list;
    for (size_t i = 0; i < Count; ++i) {
      list[i] = End::request(IBV_WR_SEND, first_id + i, &piece_, IBV_SEND_SIGNALED);
    }
    chain(list);
    return list;
  }
  /// As the step to a state does.
  void enter(ibv_qp_state state) {
    const SendGuard guard(core().locks);
    core().set_state(state);
    if (state == IBV_QPS_RTS) {
      queue_->resume();
    }
  }
  void enter_error(ibv_wc_status first) {
    const SendGuard guard(core().locks);
    core().enter_error(first);
  }

  DeviceUnderTest device_;
  std::string data_ = "0123456789abcdefghijklmnopqrstuvwxyz";
  ibv_sge piece_{reinterpret_cast<uint64_t>(data_.data()), 5, 0};
  std::unique_ptr<CoreUnderTest> own_;
  std::unique_ptr<SendQueue> queue_;
};

}  // namespace ringbolt::device
