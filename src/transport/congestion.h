#pragma once

// Hot path: no allocation, no clock.

#include <cstdint>

namespace ringbolt::transport {

/// How many packets may be on their way. Plain UDP has no flow control, so the sender watches what it can see: the
/// round-trip time, which rises when a queue fills somewhere, and losses.
///
/// Grows by a packet per packet while it finds its feet, then by kGrowthPerRound packets a round trip; gives way, once
/// a round trip, when the delay is above its target (in the manner of Swift: Kumar et al. 2020, section 3.2). Scattered
/// losses without delay are the cable's fault and change nothing; losses with delay, or a round in which a large share
/// is lost, are congestion and cost 30 %. Not thread-safe.
/// Part of a requester, and used as it is. Times in ns of the caller's clock.
class Congestion {
 public:
  struct Limits {
    uint32_t first_window = 64;  ///< packets
    uint32_t least_window = 4;   ///< after losses
    uint32_t least_by_delay =
        96;  ///< a delay alone may as well be a peer off its core, which a smaller window won't help
    uint32_t largest_window = 256;
    uint64_t target_delay_ns = 2'000'000;  ///< of queues, above the least round trip seen
  };

  explicit Congestion(const Limits& limits);

  /// Packets that may be on their way.
  uint32_t window() const { return window_x256_ / 256; }
  /// `packets` were acknowledged; rtt_ns: of the newest of them, 0 if it isn't known.
  void on_delivered(uint64_t now_ns, uint32_t packets, uint64_t rtt_ns);
  /// `packets` are found lost, while others still arrive.
  void on_loss(uint64_t now_ns, uint32_t packets);
  /// Go-back-N: all from a lost packet on goes again, so a loss costs a window. Halves it, once a round trip.
  void on_rewind(uint64_t now_ns);
  /// Nothing came back for a whole timeout.
  void on_timeout(uint64_t now_ns);
  /// Nothing was sent for so long that the queues on the way may be other people's now: no burst of a full window.
  void on_idle();

  /// 0: no sample yet.
  uint64_t smoothed_rtt_ns() const { return smoothed_rtt_ns_; }
  uint64_t least_rtt_ns() const { return least_rtt_ns_; }
  /// After this long without an answer something is lost, most likely; at least kLeastPatienceNs.
  uint64_t patience_ns() const;

 private:
  void sample(uint64_t rtt_ns);
  void shrink(uint64_t now_ns, uint32_t percent, uint32_t least);
  bool is_delayed() const;

  Limits limits_;
  uint32_t window_x256_;
  bool is_starting_ = true;
  uint64_t smoothed_rtt_ns_ = 0;
  uint64_t rtt_deviation_ns_ = 0;
  uint64_t least_rtt_ns_ = 0;
  uint64_t last_rtt_ns_ = 0;
  uint64_t round_until_ns_ = 0;  ///< the window shrinks at most once before this time
  uint64_t count_until_ns_ = 0;  ///< losses are counted in rounds
  uint32_t delivered_in_round_ = 0;
  uint32_t lost_in_round_ = 0;
};

}  // namespace ringbolt::transport
