#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "device/gids.h"
#include "device/lane_test_support.h"
#include "device/lanes.h"

namespace ringbolt::device {

/// The lanes of a queue pair; its peers are the test's.
class LanesTest : public testing::Test {
 protected:
  static constexpr uint32_t kOwnerless = 900U << kQpnIndexBits;  ///< of a slot that no process has
  static constexpr uint32_t kPeer = kOwnerless | 5;

  void begin(ibv_qp_type type = IBV_QPT_RC) {
    lanes_.reset();
    queue_.reset();
    own_ = std::make_unique<CoreUnderTest>(device_, type);
    own_->core.attributes.dest_qp_num = kPeer;
    own_->core.attributes.min_rnr_timer = 12;
    own_->core.attributes.ah_attr.grh.dgid = gid();
    queue_ = std::make_unique<SendQueue>(own_->core, SendQueue::Limits{8, 2, 32, true}, 8, nullptr);
    lanes_ = std::make_unique<Lanes>(own_->core, *queue_);
  }
  ibv_gid gid() const { return device_.port().known_gids.front(); }
  /// An errno, or 0.
  int connect() {
    const SendGuard send_guard(own_->core.locks);
    const ReceiveGuard receive_guard(own_->core.locks);
    const auto made = lanes_->connect();
    connection_ = made ? *made : nullptr;
    return made ? 0 : made.error().value;
  }
  link::Offer offer_from(uint32_t qpn, uint64_t nonce = 77) const {
    link::Offer offer;
    offer.source_qpn = qpn;
    offer.target_qpn = CoreUnderTest::kQpn;
    offer.qp_type = own_->core.type;
    offer.pd_key = 0x99;
    offer.nonce = nonce;
    offer.source_gid = offer.target_gid = address_of(gid());
    return offer;
  }
  bool give(const link::Offer& offer) {
    auto lane = link::SharedSegment::create("lane of a test", link::kLaneBytes);
    given_ = reinterpret_cast<link::LaneMemory*>(lane->data());
    return lanes_->on_offer(remote_, offer, {std::move(*lane), {}, {}});
  }
  bool give_none(const link::Offer& offer, int error) { return lanes_->on_offer(remote_, offer, {base::fail(error), {}, {}}); }
  Connection* reach(uint32_t qpn) {
    const SendGuard guard(own_->core.locks);
    return lanes_->reach(qpn, address_of(gid()));
  }
  size_t count() {
    size_t count = 0;
    const SendGuard guard(own_->core.locks);
    lanes_->each_sending([&](Connection&) { ++count; });
    return count;
  }
  void disconnect() {
    const SendGuard send_guard(own_->core.locks);
    const ReceiveGuard receive_guard(own_->core.locks);
    lanes_->disconnect();
  }
  link::LaneMemory& own_lane() const {
    return *reinterpret_cast<link::LaneMemory*>(connection_->receive_segment.data());
  }

  DeviceUnderTest device_;
  std::shared_ptr<FakePeer> peer_ = std::make_shared<FakePeer>(
      device_.process().regions().descriptor(), device_.process().wakes().descriptor());
  std::shared_ptr<link::RemoteProcess> remote_ = std::make_shared<link::RemoteProcess>(peer_);
  std::unique_ptr<CoreUnderTest> own_;
  std::unique_ptr<SendQueue> queue_;
  std::unique_ptr<Lanes> lanes_;
  Connection* connection_ = nullptr;
  link::LaneMemory* given_ = nullptr;  ///< the last offered lane, as long as anybody has it
};

}  // namespace ringbolt::device
