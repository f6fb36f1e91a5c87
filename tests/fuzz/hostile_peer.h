#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "link/lane.h"
#include "link/region_table.h"
#include "link/rendezvous.h"
#include "link/shared_segment.h"

namespace ringbolt::fuzz {

/// A second "process" on the default device that keeps to no rule: it takes part in the rendezvous, takes the lane that
/// a queue pair offers it, and then writes there what a fuzzer says. Not thread-safe.
class HostilePeer : private link::RendezvousSink {
 public:
  /// `runtime` is the runtime directory of the victim, which has the device open.
  explicit HostilePeer(const std::string& runtime);
  HostilePeer(const HostilePeer&) = delete;
  HostilePeer& operator=(const HostilePeer&) = delete;

  /// The number under which the victim's queue pair connects to us; another one each time.
  uint32_t next_qpn();

  /// Takes the lane that queue pair `victim` offers and offers it one in return. False if none came in time.
  bool connect(uint32_t own_qpn, const ibv_qp& victim, const ibv_gid& gid);
  void disconnect(uint32_t own_qpn, uint32_t victim_qpn);

  /// What the victim receives from: ours to scribble on while connected.
  link::LaneMemory& incoming() { return *reinterpret_cast<link::LaneMemory*>(incoming_->data()); }
  /// What the victim sends to.
  link::LaneMemory& outgoing() { return *reinterpret_cast<link::LaneMemory*>(outgoing_->data()); }

 private:
  void on_ready(const std::shared_ptr<link::Peer>&) override {}
  void on_offer(const std::shared_ptr<link::Peer>& peer, const link::Offer& offer, link::OfferFiles files) override;
  void on_withdraw(const std::shared_ptr<link::Peer>&, const link::Withdraw&) override {}
  void on_refuse(const std::shared_ptr<link::Peer>&, const link::Refuse&) override {}
  void on_arena(const std::shared_ptr<link::Peer>&, const link::Arena&, base::UniqueFd) override {}
  void on_release(const std::shared_ptr<link::Peer>&, const link::Release&) override {}
  void on_gone(const std::shared_ptr<link::Peer>&) override {}
  void on_poke() override {}
  void on_bell() override {}

  link::RegionTable regions_;
  link::WakeTable wakes_;
  std::unique_ptr<link::Rendezvous> rendezvous_;
  std::shared_ptr<link::Peer> victim_;
  std::optional<link::SharedSegment> incoming_;
  std::optional<link::SharedSegment> outgoing_;
  uint32_t expected_from_ = 0;
  uint32_t next_index_ = 1;
  uint64_t nonce_ = 1;
};

}  // namespace ringbolt::fuzz
