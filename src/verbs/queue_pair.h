#pragma once

// Hot path: post_send and post_receive do nothing but call the device.

#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>

#include "verbs/objects.h"

namespace ringbolt::verbs {

/// What a queue pair is made for. The completion queues must outlive it.
struct QueuePairPlan {
  ibv_qp_type type = IBV_QPT_UC;  ///< or RC
  const CompletionQueue* send_cq = nullptr;
  const CompletionQueue* receive_cq = nullptr;
  uint32_t send_depth = 1;     ///< work requests; devices over Thunderbolt count frames of 4 KiB instead
  uint32_t receive_depth = 1;  ///< likewise
  uint32_t send_pieces = 1;
  uint32_t receive_pieces = 1;
  uint32_t inline_bytes = 0;
  bool is_each_signalled = false;  ///< every send completes, whatever its flags
};

/// Our end of the way to the peer. Timers and counts are by default what perftest takes.
struct Path {
  uint8_t port = 1;
  uint8_t gid_index = 0;
  ibv_mtu mtu = IBV_MTU_4096;
  unsigned remote_access = 0;  ///< IBV_ACCESS_REMOTE_..., of what the peer may do
  uint8_t hop_limit = 1;       ///< a cable's other end; 64 or so through routers
  uint8_t service_level = 0;
  uint32_t psn = 7;  ///< of the first packet that we send; 24 bits

  // Of RC alone.
  uint8_t timeout = 14;  ///< for an acknowledgement: 4.096 us * 2^timeout, here 67 ms; 0 waits for ever
  uint8_t retry_count = 7;
  uint8_t rnr_retry = 7;       ///< tries when the peer has posted no receive; 7 is for ever
  uint8_t min_rnr_timer = 12;  ///< code of the specification, here 0.64 ms
  uint8_t reads_as_target = 1;
  uint8_t reads_as_initiator = 1;
};

/// The peer's end, as it has told us.
struct Peer {
  uint32_t qp_number = 0;
  uint32_t psn = 0;
  uint16_t lid = 0;
  ibv_gid gid = {};
};

class QueuePair;

/// Likewise, of a call that is made too often to set errno to 0 before it: looked at only where the call has failed.
inline int error_of_post(int returned) {
  if (returned == 0) [[likely]] {
    return 0;
  }
  return error_of(returned, errno);
}

/// A queue pair on its way to its peer: RESET, then INIT, RTR, RTS. Each step takes exactly the attributes that the
/// specification requires of it, since strict devices refuse any other. Not thread-safe. Owns the queue pair, in any
/// state. Destroying it ends whatever was posted, without completions. Refers to its context, which stays where it
/// is.
class UnconnectedQueuePair {
 public:
  /// In RESET. Throws base::Error.
  UnconnectedQueuePair(const ProtectionDomain& pd, const QueuePairPlan& plan);

  uint32_t number() const { return qp_->qp_num; }
  ibv_qp_type type() const { return qp_->qp_type; }
  /// What the device has granted, in its own unit: it may be more than was asked.
  uint32_t send_depth() const { return depths_.max_send_wr; }
  uint32_t receive_depth() const { return depths_.max_recv_wr; }
  uint32_t inline_bytes() const { return depths_.max_inline_data; }
  ibv_qp* get() const { return qp_.get(); }
  /// Of the path that to_init() was given.
  uint32_t psn() const { return path_.psn; }

  /// RESET to INIT. From here on most devices take receives. Throws base::Error.
  void to_init(const Path& path);
  /// INIT to RTR: receives run from here on, and the device looks for the peer; some devices block in this for as long
  /// as the peer is silent. try_to_rtr() returns 0 or a positive errno; to_rtr() throws base::Error.
  [[nodiscard]] int try_to_rtr(const Peer& peer);
  void to_rtr(const Peer& peer);
  /// Back to RESET, wherever it is: what was posted is forgotten. Throws base::Error. Completions that lie in the
  /// queue already are the caller's to tell apart.
  void to_reset();
  /// RTR to RTS. Nothing may be sent before the peer is in RTR: that is for the side channel to say. Moves on into
  /// what it returns, unless it throws base::Error.
  QueuePair to_rts() &&;
  /// All steps that are left. Throws base::Error; then the queue pair is where it failed.
  QueuePair connect(const Path& path, const Peer& peer) &&;

  /// A receive, from INIT on where the device takes it. 0, or a positive errno.
  [[nodiscard]] int post_receive(ibv_recv_wr& first, ibv_recv_wr** bad = nullptr) const noexcept;

  /// "rdma_en2, UC queue pair 0x900", for messages.
  std::string name() const;

 private:
  friend class QueuePair;
  enum class State : uint8_t { kReset, kInit, kRtr };

  void learn_depths(const QueuePairPlan& plan);

  const Context* context_ = nullptr;
  Owned<ibv_qp> qp_;
  ibv_qp_cap depths_{};
  Path path_;
  Peer peer_;
  State state_ = State::kReset;
};

/// A connected queue pair. Posting and what destroys or resets it must not run at once; the library itself decides
/// whether two threads may post (most let them). Owns the queue pair. Move-only; references to it do not survive a
/// move.
class QueuePair {
 public:
  uint32_t number() const { return unconnected_.number(); }
  ibv_qp_type type() const { return unconnected_.type(); }
  uint32_t send_depth() const { return unconnected_.send_depth(); }
  uint32_t receive_depth() const { return unconnected_.receive_depth(); }
  uint32_t inline_bytes() const { return unconnected_.inline_bytes(); }
  const Path& path() const { return unconnected_.path_; }
  const Peer& peer() const { return unconnected_.peer_; }
  ibv_qp* get() const { return unconnected_.get(); }

  /// Posts a chain of requests, which is read before this returns. 0, or a positive errno; then `bad`, if given, is the
  /// first that was not posted where the device says so, and otherwise null. Does not block. Hot path.
  [[nodiscard]] int post_send(ibv_send_wr& first, ibv_send_wr** bad = nullptr) const noexcept {
    ibv_send_wr* failed = nullptr;
    const int error = error_of_post(ibv_post_send(get(), &first, &failed));
    if (bad != nullptr) {
      *bad = failed;
    }
    return error;
  }
  /// Likewise for receives.
  [[nodiscard]] int post_receive(ibv_recv_wr& first, ibv_recv_wr** bad = nullptr) const noexcept {
    return unconnected_.post_receive(first, bad);
  }

  /// Asks that messages which this process can see where they lie are not copied: completions then say so by
  /// base::kReceivedInPlace. False where the library has no such thing, or the device not for this queue pair.
  bool receive_in_place() const noexcept {
    const Calls& calls = unconnected_.context_->calls();
    return calls.receive_in_place != nullptr && calls.receive_in_place(get()) == 0;
  }
  /// To ERR: what is posted completes as flushed. 0, or a positive errno. Thread-safe as far as the library is. Where
  /// it fails, the queue pair is as it was.
  [[nodiscard]] int to_error() const;
  /// To RESET, for a new connection with the same number: what was posted is forgotten, and completions of it may or
  /// may not still come. Throws base::Error.
  UnconnectedQueuePair reset() &&;
  /// For messages: also the peer.
  std::string name() const;

 private:
  friend class UnconnectedQueuePair;
  explicit QueuePair(UnconnectedQueuePair&& connected) : unconnected_(std::move(connected)) {}

  UnconnectedQueuePair unconnected_;
};

inline int UnconnectedQueuePair::post_receive(ibv_recv_wr& first, ibv_recv_wr** bad) const noexcept {
  ibv_recv_wr* failed = nullptr;
  const int error = error_of_post(ibv_post_recv(get(), &first, &failed));
  if (bad != nullptr) {
    *bad = failed;
  }
  return error;
}

/// "UC", "RC", "UD"; otherwise the number.
std::string text_of(ibv_qp_type type);

}  // namespace ringbolt::verbs
