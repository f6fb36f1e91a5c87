#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "pair/device.h"
#include "pair/peer.h"
#include "pair/queue_pair.h"
#include "perf/parameters.h"

namespace ringbolt::tools::perf {

using pair::Device;
using pair::Offer;
using pair::Peer;
using pair::QueuePair;
using pair::QueuePairPlan;

/// What one link is for.
struct Step {
  uint64_t size_bytes = 0;
  bool is_latency = false;
};

/// This end of the connections of one step: queue pairs, their memory, and completion queues. Constructed at both ends
/// at once; then all queue pairs are connected, and receives are posted. Calls throw ProbeFailure. Not thread-safe.
///
/// Credits and notices are short messages of ours beside the measured ones. Credits have a queue pair of their own, so
/// that each receive queue gets messages of one size only: there are devices that want that.
/// Owns memory, queues and queue pairs, which go in the reverse order of their members: queue pairs before completion
/// queues, these before the channel and the memory. Device and peer outlive it.
class Link {
 public:
  /// Of the receives for notices on each queue pair.
  /// As many slots again are there to send from.
  static constexpr uint32_t kNotices = 64;
  static constexpr uint32_t kCreditSends = 64;
  static constexpr uint32_t kCreditReceives = 256;
  /// Of a notice or a credit: a queue pair's index, and a count.
  struct Word {
    uint64_t queue_pair = 0;
    uint64_t count = 0;
  };

  /// Blocks for the other end, as long as the peer may be awaited. If it throws nothing is left behind.
  Link(const Device& device, const Parameters& parameters, const Tuning& tuning, const Step& step, Peer& peer);

  const Parameters& parameters() const { return parameters_; }
  const Depths& depths() const { return depths_; }
  const Offer& theirs() const { return theirs_; }
  uint64_t size_bytes() const { return step_.size_bytes; }
  uint32_t seed() const { return mine_.seed; }
  uint32_t queue_pairs() const { return static_cast<uint32_t>(queue_pairs_.size()); }
  const QueuePair& queue_pair(uint32_t index) const { return queue_pairs_[index]; }
  /// What a receive begins with: of UD a global route header.
  size_t header_bytes() const { return parameters_.transport == Transport::kUd ? 40 : 0; }
  /// Nothing may get lost: over RC, and where that is a failure.
  bool loses_nothing() const { return parameters_.transport == Transport::kRc || !parameters_.may_lose; }
  // Queues are this link's own; credit_cq() is null where no credits are sent: of latency, READs and atomics.
  uint32_t local_key() const { return memory_.local_key(); }
  ibv_cq* send_cq() const { return send_cq_.get(); }
  ibv_cq* receive_cq() const { return receive_cq_.get(); }
  ibv_cq* credit_cq() const { return credit_cq_.get(); }
  const verbs::Calls& verbs() const { return device_.verbs(); }

  // Spans are of this link's memory. Indices are below the depths, which the caller sees to: nothing is checked.
  std::span<std::byte> send_slot(uint32_t queue_pair, uint64_t index) const;
  /// The message alone, also of UD.
  std::span<std::byte> receive_slot(uint32_t queue_pair, uint64_t index) const;
  uint64_t remote_send_address(uint32_t queue_pair, uint64_t index) const;
  uint64_t remote_receive_address(uint32_t queue_pair, uint64_t index) const;

  /// Posts the receive that belongs to the slot, or to the notice.
  void post_receive(uint32_t queue_pair, uint64_t index) const;
  void post_notice_receive(uint32_t queue_pair, uint64_t index) const;
  std::span<std::byte> notice_slot(uint32_t queue_pair, uint64_t index) const;
  /// Sends a notice on that queue pair; its completion on send_cq() has the given id.
  /// By the sender of WRITEs of a bandwidth alone, which keeps half of kNotices under way on a queue pair at most.
  void post_notice(uint32_t queue_pair, uint64_t count, uint64_t id);

  /// Tells the peer how many of a queue pair's messages are checked. False if too many are under way; try later.
  bool send_credit(uint32_t queue_pair, uint64_t count);
  /// The next credit that has come, if any.
  std::optional<Word> take_credit();

  /// Takes up to 16 completions; throws if one is a failure, or of none of the queue pairs: the upper half of each id
  /// is one's index. `what`: for the message.
  int poll(ibv_cq* cq, std::span<ibv_wc> completions, const char* what) const;
  bool has_events() const { return events_ != nullptr; }
  /// With --events: called after fruitless polls; the second call in a row sleeps until something comes. Else nothing.
  /// Sleeps for 20 ms at most. Events are acknowledged at once, so that destroying a queue never waits for one
  /// (ibv_get_cq_event(3)).
  void doze();

 private:
  void lay_out();
  void make_queues(const Tuning& tuning);
  void post_first_receives();
  void connect(const Tuning& tuning);
  [[nodiscard]] int try_post_receive(uint32_t queue_pair, uint64_t index) const;
  bool has_credits() const;
  bool has_notices() const;
  /// Which message of the memory for `slots` of them on each queue pair it is.
  uint64_t place_of(uint32_t queue_pair, uint64_t index, uint32_t slots) const {
    return depths_.has_one_place ? queue_pair : uint64_t{queue_pair} * slots + index;
  }
  std::span<std::byte> bytes(size_t offset, size_t length) const { return {memory_.data() + offset, length}; }
  std::span<std::byte> credit_slot(uint64_t index) const;
  void post_word(const QueuePair& queue_pair, std::span<std::byte> slot, const Word& word, uint64_t id) const;
  void arm() const;

  // Not owned, as the peer below.
  const Device& device_;
  Parameters parameters_;
  Step step_;
  Peer& peer_;
  Depths depths_;
  Offer mine_;
  Offer theirs_;
  size_t stride_ = 0;
  size_t receive_offset_ = 0;
  size_t word_offset_ = 0;
  uint32_t receive_places_ = 0;  // of each queue pair; the device may take fewer receives
  pair::Region memory_;
  pair::OwnedVerbs<ibv_comp_channel> events_;
  pair::OwnedVerbs<ibv_cq> send_cq_;
  pair::OwnedVerbs<ibv_cq> receive_cq_;
  pair::OwnedVerbs<ibv_cq> credit_cq_;
  std::vector<QueuePair> queue_pairs_;
  std::optional<QueuePair> credit_queue_pair_;
  uint32_t credits_under_way_ = 0;
  uint64_t credits_sent_ = 0;
  // Of each queue pair, as their slots: the last kNotices of one have slots of their own, whatever the others send.
  std::vector<uint64_t> notices_sent_;
  std::vector<Word> credits_;  // come and not taken
  bool is_armed_ = false;
};

}  // namespace ringbolt::tools::perf
