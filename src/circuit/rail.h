#pragma once

// Hot path: send(), poll() and post_receive() do not allocate, lock or wait.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/in_place.h"
#include "base/lock_guard.h"
#include "circuit/control.h"
#include "circuit/devices.h"
#include "verbs/queue_pair.h"
#include "verbs/slab.h"

namespace ringbolt::circuit {

/// Depths count requests, unless `counts_frames`. `sends` is not owned, and outlives the rail.
struct RailPlan {
  ibv_qp_type type = IBV_QPT_RC;  ///< or UC, with SEND alone
  /// Of either end's device: depths are numbers of frames of 4 KiB, and a message fills as many as its receive.
  bool counts_frames = false;
  uint16_t port = 0;  ///< of the node
  uint8_t gid_index = 0;
  uint32_t n_receives = 1;
  uint32_t receive_bytes = 64;       ///< of each
  uint32_t peer_receive_bytes = 64;  ///< of each at the other end
  uint32_t send_depth = 32;
  std::span<std::byte> sends = {};  ///< the memory that is sent from, besides what is received
  bool may_read_in_place = false;
  bool relays = false;        ///< what one end has received the other end sends
  bool is_direct = false;     ///< long messages are written by it, one way or the other
  bool takes_writes = false;  ///< the other end writes to memory here of which it is told
};

/// A queue pair to the next hop of a circuit, with its completion queue and the memory of its receives. On UC frames
/// may be lost without a word: who uses it sees to that (repeats.h). Knows nothing of what frames mean. Not
/// thread-safe. Owned by its circuit (under the circuit's lock), by a RelayedRail (in the relays' thread), or by
/// whoever is making it. Of one thread at a time.
class Rail {
 public:
  /// In RESET. Throws base::Error. `devices` outlives it.
  Rail(const Devices& devices, const RailPlan& plan);
  /// On UC it may take half a second (endings.h), and the device reads what was posted until then.
  ~Rail();
  Rail(const Rail&) = delete;
  Rail& operator=(const Rail&) = delete;

  /// For the other end. `reads_in_place` once it is connected.
  QueuePairAddress address() const;
  /// To RTS, with all receives posted. Some devices block in this for as long as the peer is silent. Throws
  /// base::Error. Once; what may be called before it: address(), name(), may_send_from(), fail().
  void connect(const QueuePairAddress& peer);
  /// "rocep1s0f0, RC queue pair 0x12 to 0x900 at 10.77.0.2".
  std::string name() const;

  /// What is sent from: the memory of the plan, or, of another rail, what that one has received.
  // Throws base::Error. The memory outlives this rail.
  void may_send_from(std::span<std::byte> memory) { extra_.emplace(device_.pd, memory); }

  bool may_send() const { return n_posted_ - n_completed_ < depth_; }
  /// Sends a piece of the memory; it stays untouched until the other end has answered in its own way. Before this,
  /// may_send(). False: the device refuses, the rail has failed.
  bool send(const std::byte* frame, uint32_t length_bytes) { return send(frame, length_bytes, false, 0); }
  /// Likewise, and `on_sent` of poll() comes with this cookie when the device has done with the frame's memory.
  /// Before this, may_send().
  bool send_told(const std::byte* frame, uint32_t length_bytes, uint32_t cookie) {
    return send(frame, length_bytes, true, cookie);
  }

  // Two requests: the WRITE and its frame.
  bool may_write() const { return n_posted_ - n_completed_ + 2 <= depth_; }
  /// Writes `piece` (registered with this rail's device) to `address` at the other end, then sends the frame, which
  /// arrives after it; `on_sent` of both comes with the cookie. Of RC alone. Before this, may_write().
  bool write_and_send(const ibv_sge& piece, uint64_t address, uint32_t key, const std::byte* frame,
                      uint32_t length_bytes, uint32_t cookie);

  /// Views of a receive, or of the sender's memory: good until that is posted again, or the sender told that it is
  /// taken.
  struct Received {
    uint32_t slot = 0;
    uint32_t length_bytes = 0;
    std::span<const std::byte> head;   ///< the first bytes, 120 at least or all
    const std::byte* frame = nullptr;  ///< all of them: in the receive, or where the sender wrote them
  };
  /// Takes what has completed: `on_received` (const Received&) for each frame, whose receive is its own until
  /// post_receive() or free(); `on_sent` (uint32_t cookie) for those of send_told(). What free() has been given is
  /// posted when nothing has come. False: the rail has failed. Up to 16 completions a call, so one busy rail does not
  /// hold up the others. Neither callback may add or destroy rails; both may send and post on this one. What
  /// completed before a failure is handed over all the same.
  template <class OnReceived, class OnSent>
  bool poll(OnReceived on_received, OnSent on_sent) {
    std::array<ibv_wc, 16> completions;
    const auto n = cq_.poll(completions);
    if (!n) [[unlikely]] {
      return fail("ibv_poll_cq", n.error().value);
    }
    if (*n == 0) {
      return n_freed_ == 0 || post_freed();
    }
    bool is_sound = true;
    for (size_t i = 0; i < *n; ++i) {
      const ibv_wc& one = completions[i];
      if (one.status != IBV_WC_SUCCESS) [[unlikely]] {
        is_sound = fail_completion(one);
      } else if ((one.wr_id & kIsReceive) != 0) {
        base::call_locked(on_received, received(one));
      } else {
        // Sends complete in order, so this is the word for all before it, too, of which none may have come.
        const uint32_t n_completed = static_cast<uint32_t>(one.wr_id) + 1;
        // wr_id counts posts, and wraps around like them.
        if (n_completed - n_completed_ > n_posted_ - n_completed_) [[unlikely]] {
          continue;  // of a library that may be anybody's
        }
        n_completed_ = n_completed;
        for (; n_told_ > 0 && static_cast<int32_t>(told_[first_told_].request - n_completed) < 0; --n_told_) {
          const uint32_t cookie = told_[first_told_].cookie;
          first_told_ = first_told_ + 1 == told_.size() ? 0 : first_told_ + 1;
          base::call_locked(on_sent, cookie);
        }
      }
    }
    return is_sound && failure_.empty();
  }

  /// The receive is free again. By free() it is posted with the next few, or when there is nothing else to do.
  bool post_receive(uint32_t slot);
  // No overflow: n_freed_ is below kFreedPerPost here, and post_freed() empties it, failed rails included in that
  // they free nothing more.
  bool free(uint32_t slot) {
    freed_[n_freed_++] = static_cast<uint16_t>(slot);
    return n_freed_ < kFreedPerPost || post_freed();
  }
  /// The bytes of a receive, where it holds them itself.
  std::span<std::byte> slot(uint32_t slot) const {
    return receives_->bytes().subspan(size_t{slot} * plan_.receive_bytes, plan_.receive_bytes);
  }
  std::span<std::byte> receives() const { return receives_->bytes(); }

  bool has_failed() const { return !failure_.empty(); }
  const std::string& failure() const { return failure_; }
  /// It is of no use any more; what is posted is given up. Once this returns the other end can write to no memory of
  /// this process by it: of RC, the queue pair is in ERR, where the device drops whatever comes, or destroyed. Of UC it
  /// is left as it is, for that step may wait for a peer: the device goes on with what is posted until the rail is
  /// destroyed.
  bool fail(std::string why);
  const Device& device() const { return device_; }
  bool is_direct() const { return plan_.is_direct; }
  ibv_qp_type type() const { return plan_.type; }
  /// For who sleeps: the completion channel's descriptor; -1: the device has none. arm() before the last look.
  int channel_fd() const { return channel_ ? channel_->fd() : -1; }
  void arm() const;

 private:
  // The highest bit of wr_id; sends have their number among posts there, 32 bits.
  static constexpr uint64_t kIsReceive = uint64_t{1} << 63U;
  // A completion costs a card a write to memory: every eighth is enough, as depths are at least twice that.
  static constexpr uint32_t kRequestsPerSignal = 8;
  /// Few of a window: the others stand ready meanwhile.
  static constexpr uint32_t kFreedPerPost = 4;

  bool send(const std::byte* frame, uint32_t length_bytes, bool is_told, uint32_t cookie);
  /// Patches send_request_ and counts it.
  void prepare(const std::byte* frame, uint32_t length_bytes, bool is_told, uint32_t cookie);
  bool post_freed();
  bool fail(const char* call, int error);
  bool fail_completion(const ibv_wc& completion);
  Received received(const ibv_wc& completion) const;

  // Members are destroyed from below: queue pair, regions, memory, completion queue, channel, in the order that verbs
  // ask for (ibv_dereg_mr(3): not while in use).
  const Device& device_;
  const bringup::PortCard& card_;
  RailPlan plan_;
  std::optional<verbs::CompletionChannel> channel_;
  verbs::CompletionQueue cq_;
  std::optional<verbs::Slab> receives_;
  std::optional<verbs::MemoryRegion> receive_region_;
  std::optional<verbs::MemoryRegion> send_region_;
  std::optional<verbs::MemoryRegion> extra_;
  std::optional<verbs::UnconnectedQueuePair> unconnected_;
  std::optional<verbs::QueuePair> qp_;
  uint32_t psn_ = 0;
  uint32_t depth_ = 0;
  uint32_t least_bytes_ = 0;  // of a message, where frames of 4 KiB are counted
  // Wrap around after 2^32, as do all comparisons of them.
  uint32_t n_posted_ = 0;
  uint32_t n_completed_ = 0;  // of these, in order
  uint32_t n_unsignalled_ = 0;
  struct Told {
    uint32_t request = 0;  // its place among those posted, from 0
    uint32_t cookie = 0;
  };
  std::vector<Told> told_;  // a ring of depth_
  size_t first_told_ = 0;
  size_t n_told_ = 0;
  // Requests as they are posted, made once and patched.
  ibv_sge send_piece_{};
  ibv_send_wr send_request_{};
  ibv_sge write_piece_{};
  ibv_send_wr write_request_{};
  std::array<ibv_sge, kFreedPerPost> receive_pieces_{};
  std::array<ibv_recv_wr, kFreedPerPost> receive_requests_{};
  std::array<uint16_t, kFreedPerPost> freed_{};
  uint32_t n_freed_ = 0;
  bool reads_in_place_ = false;
  bool peer_reads_in_place_ = false;
  std::string name_;  // once it is connected
  std::string failure_;
};

}  // namespace ringbolt::circuit
