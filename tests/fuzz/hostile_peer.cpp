#include "hostile_peer.h"

#include <cstring>
#include <utility>

#include "base/assert.h"
#include "base/clock.h"
#include "device/limits.h"

namespace ringbolt::fuzz {
namespace {

constexpr uint64_t kOfferTimeoutNs = 5'000'000'000;

}  // namespace

HostilePeer::HostilePeer(const std::string& runtime) {
  const auto table = regions_.create();
  RINGBOLT_ASSERT(table);
  const auto wakes = wakes_.create();
  RINGBOLT_ASSERT(wakes);
  rendezvous_ = link::Rendezvous::open({runtime + "/default/slots", *table, *wakes, link::kSlotCount}, *this);
}

uint32_t HostilePeer::next_qpn() {
  next_index_ = next_index_ % (device::kMaxQueuePairs - 1) + 1;
  return (rendezvous_->slot() << device::kQpnIndexBits) | next_index_;
}

void HostilePeer::on_offer(const std::shared_ptr<link::Peer>& peer, const link::Offer& offer, link::OfferFiles files) {
  if (offer.source_qpn != expected_from_) {
    return;
  }
  auto segment = link::SharedSegment::map(files.lane, link::kLaneBytes, true);
  RINGBOLT_ASSERT(segment);
  incoming_ = std::move(*segment);
  victim_ = peer;
}

bool HostilePeer::connect(uint32_t own_qpn, const ibv_qp& victim, const ibv_gid& gid) {
  incoming_.reset();
  expected_from_ = victim.qp_num;
  const uint64_t deadline = base::now_ns() + kOfferTimeoutNs;
  while (!incoming_ && base::now_ns() < deadline) {
    rendezvous_->dispatch(10);
  }
  if (!incoming_) {
    return false;
  }
  auto segment = link::SharedSegment::create("hostile lane", link::kLaneBytes);
  RINGBOLT_ASSERT(segment);
  outgoing_ = std::move(*segment);
  outgoing().access.store(0xff);
  link::Offer offer;
  offer.source_qpn = own_qpn;
  offer.target_qpn = victim.qp_num;
  offer.qp_type = victim.qp_type;
  offer.pd_key = 1;
  offer.nonce = ++nonce_;
  std::memcpy(offer.source_gid.data(), gid.raw, sizeof gid.raw);
  offer.target_gid = offer.source_gid;
  return victim_->send(offer, outgoing_->descriptor());
}

void HostilePeer::disconnect(uint32_t own_qpn, uint32_t victim_qpn) {
  victim_->send(link::Withdraw{own_qpn, victim_qpn, nonce_});
}

}  // namespace ringbolt::fuzz
