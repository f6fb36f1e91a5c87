#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "pair/device.h"
#include "pair/offer.h"
#include "pair/peer.h"
#include "pair/transport.h"

namespace ringbolt::tools::pair {

/// What a queue pair is made for.
struct QueuePairPlan {
  Transport transport = Transport::kRc;
  ibv_cq* send_cq = nullptr;
  ibv_cq* receive_cq = nullptr;
  uint32_t send_depth = 1;
  uint32_t receive_depth = 1;
  uint64_t message_bytes = 0;  ///< of the longest
  int inline_bytes = 0;        ///< -1: as much as the device gives, up to kUsualInlineBytes
  unsigned remote_access = 0;  ///< IBV_ACCESS_REMOTE_...
};

/// A connected queue pair, or a UD one with one peer. Calls throw ProbeFailure. Not thread-safe.
class QueuePair {
 public:
  static constexpr int kUsualInlineBytes = 220;      // as perftest asks
  static constexpr uint32_t kQueueKey = 0x52425046;  // of UD

  /// Made, and ready for receives to be posted.
  QueuePair(const Device& device, const QueuePairPlan& plan);

  QueuePairAddress address() const { return {qp_->qp_num, psn_}; }
  void connect(const Device& device, const Offer& peer, const QueuePairAddress& address, const PortChoice& choice);

  /// What the device has granted.
  uint32_t inline_bytes() const { return inline_bytes_; }
  uint32_t send_depth() const { return send_depth_; }
  uint32_t receive_depth() const { return receive_depth_; }
  ibv_qp* get() const { return qp_.get(); }
  /// For who destroys it and wants to know how that went; of UD after drop_path().
  ibv_qp* release() { return qp_.release(); }
  void drop_path() { handle_.reset(); }
  /// Fills in where a UD request goes; nothing for others. Hot path.
  void address_request(ibv_send_wr& request) const {
    if (handle_) {
      request.wr.ud.ah = handle_.get();
      request.wr.ud.remote_qpn = peer_number_;
      request.wr.ud.remote_qkey = kQueueKey;
    }
  }
  void post_receive(std::span<std::byte> slot, uint32_t local_key, uint64_t id) const;
  /// Likewise; returns 0, or what ibv_post_recv returned.
  [[nodiscard]] int try_post_receive(std::span<std::byte> slot, uint32_t local_key, uint64_t id) const;

 private:
  void make(const Device& device, const QueuePairPlan& plan, uint32_t inline_bytes);
  ibv_ah_attr path_to(const Device& device, const Offer& peer) const;
  void connect_reliably(const Device& device, const Offer& peer, const QueuePairAddress& address,
                        const PortChoice& choice);

  Transport transport_;
  OwnedVerbs<ibv_qp> qp_;
  OwnedVerbs<ibv_ah> handle_;  // of UD
  uint32_t psn_ = 0;
  uint32_t inline_bytes_ = 0;
  uint32_t send_depth_ = 0;
  uint32_t receive_depth_ = 0;
  uint32_t peer_number_ = 0;
};

/// What `mine` lacks of device and queue pairs is filled in and told to the peer, and all are connected with those of
/// the peer's offer, which is returned. Both ends call it at once.
Offer connect_all(const Device& device, std::span<QueuePair* const> queue_pairs, Offer mine, const PortChoice& choice,
                  Peer& peer);

}  // namespace ringbolt::tools::pair
