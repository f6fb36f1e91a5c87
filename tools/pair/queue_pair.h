#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "json_text.h"
#include "pair/device.h"
#include "pair/peer.h"
#include "pair/transport.h"

namespace ringbolt::tools::pair {

/// One queue pair, for the other end.
struct QueuePairAddress {
  uint32_t number = 0;
  uint32_t psn = 0;
  friend bool operator==(const QueuePairAddress&, const QueuePairAddress&) = default;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(QueuePairAddress, number, psn)

/// What an end tells the other before both connect: its port, its queue pairs, and its memory.
struct Offer {
  std::array<uint8_t, 16> gid{};
  uint16_t lid = 0;
  uint32_t mtu_bytes = 0;
  uint32_t target_depth = 0;  ///< READs and atomics that it serves at once
  uint32_t seed = 0;          ///< of what it sends
  uint32_t window = 0;        ///< receive slots of each queue pair
  uint32_t send_slots = 0;
  uint32_t stride = 0;           ///< bytes from slot to slot
  uint64_t send_address = 0;     ///< of the first queue pair's send slots; those of the others follow
  uint64_t receive_address = 0;  ///< likewise
  uint32_t remote_key = 0;
  std::vector<QueuePairAddress> queue_pairs = {};  ///< the last is that of the credits, if there are some
  friend bool operator==(const Offer&, const Offer&) = default;

  bool makes_sense() const {
    constexpr size_t kMostQueuePairs = 4096;
    return queue_pairs.size() <= kMostQueuePairs && window != 0 && send_slots != 0;
  }
};
// A peer's word: makes_sense() is asked before anything is made of it, and the device guards memory by keys.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Offer, gid, lid, mtu_bytes, target_depth, seed, window, send_slots, stride,
                                   send_address, receive_address, remote_key, queue_pairs)

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
/// `device` and the completion queues of the plan must outlive it.
class QueuePair {
 public:
  static constexpr int kUsualInlineBytes = 220;      // as perftest asks
  static constexpr uint32_t kQueueKey = 0x52425046;  // of UD

  /// Made, and ready for receives to be posted.
  QueuePair(const Device& device, const QueuePairPlan& plan);

  QueuePairAddress address() const { return {qp_->qp_num, psn_}; }
  /// Once. Receives should be posted by then: the peer may send as soon as it is connected itself.
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
