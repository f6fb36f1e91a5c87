#include "transport/congestion.h"

#include <algorithm>

namespace ringbolt::transport {
namespace {

constexpr uint32_t kScale = 256;  // of window_x256_
// Packets by which the window grows in each round trip, once it has found its feet; less when it is small.
constexpr uint32_t kGrowthPerRound = 4;
constexpr uint32_t kSmallWindowShare = 16;
// A round in which more than this share is lost is congestion even if the delay says nothing: a queue that drops
// everything at once has no delay to show.
constexpr uint32_t kTolerableLossPercent = 15;
constexpr uint32_t kLeastLossesToJudge = 8;
constexpr uint64_t kLeastPatienceNs = 200'000;
constexpr uint64_t kFirstPatienceNs = 2'000'000;

}  // namespace

Congestion::Congestion(const Limits& limits)
    : limits_(limits), window_x256_(std::min(limits.first_window, limits.largest_window) * kScale) {}

uint64_t Congestion::patience_ns() const {
  if (smoothed_rtt_ns_ == 0) {
    return kFirstPatienceNs;
  }
  return std::max(kLeastPatienceNs, 2 * smoothed_rtt_ns_ + 4 * rtt_deviation_ns_);
}

bool Congestion::is_delayed() const { return last_rtt_ns_ > least_rtt_ns_ + limits_.target_delay_ns; }

/// RFC 6298, section 2.
void Congestion::sample(uint64_t rtt_ns) {
  last_rtt_ns_ = rtt_ns;
  least_rtt_ns_ = least_rtt_ns_ == 0 ? rtt_ns : std::min(least_rtt_ns_, rtt_ns);
  if (smoothed_rtt_ns_ == 0) {
    smoothed_rtt_ns_ = rtt_ns;
    rtt_deviation_ns_ = rtt_ns / 2;
    return;
  }
  const uint64_t deviation = rtt_ns > smoothed_rtt_ns_ ? rtt_ns - smoothed_rtt_ns_ : smoothed_rtt_ns_ - rtt_ns;
  rtt_deviation_ns_ = (3 * rtt_deviation_ns_ + deviation) / 4;
  smoothed_rtt_ns_ = (7 * smoothed_rtt_ns_ + rtt_ns) / 8;
}

void Congestion::shrink(uint64_t now_ns, uint32_t percent, uint32_t least) {
  if (now_ns < round_until_ns_) {
    return;
  }
  is_starting_ = false;
  round_until_ns_ = now_ns + std::max(smoothed_rtt_ns_, last_rtt_ns_);
  const uint32_t smaller = std::max(least * kScale, window_x256_ - window_x256_ * percent / 100);
  window_x256_ = std::min(window_x256_, smaller);
}

void Congestion::on_delivered(uint64_t now_ns, uint32_t packets, uint64_t rtt_ns) {
  if (rtt_ns != 0) {
    sample(rtt_ns);
  }
  if (now_ns >= count_until_ns_) {
    count_until_ns_ = now_ns + smoothed_rtt_ns_;
    delivered_in_round_ = lost_in_round_ = 0;
  }
  delivered_in_round_ += packets;
  if (is_delayed()) {
    if (rtt_ns != 0) {
      // In proportion to the excess, at most a half.
      const uint64_t excess = last_rtt_ns_ - least_rtt_ns_ - limits_.target_delay_ns;
      shrink(now_ns, static_cast<uint32_t>(std::min<uint64_t>(50, 80 * excess / last_rtt_ns_)), limits_.least_by_delay);
    }
    return;
  }
  if (last_rtt_ns_ > least_rtt_ns_ + limits_.target_delay_ns / 4) {
    is_starting_ = false;  // a queue begins to fill: doubling once more would overshoot
  }
  const uint64_t growth =
      uint64_t{packets} *
      (is_starting_ ? kScale : std::min(kScale / kSmallWindowShare, kGrowthPerRound * kScale * kScale / window_x256_));
  window_x256_ = static_cast<uint32_t>(std::min<uint64_t>(limits_.largest_window * kScale, window_x256_ + growth));
}

void Congestion::on_loss(uint64_t now_ns, uint32_t packets) {
  lost_in_round_ += packets;
  const bool is_heavy = lost_in_round_ >= kLeastLossesToJudge &&
                        lost_in_round_ * 100 > (lost_in_round_ + delivered_in_round_) * kTolerableLossPercent;
  if (is_heavy || last_rtt_ns_ > least_rtt_ns_ + limits_.target_delay_ns / 2) {
    shrink(now_ns, 30, limits_.least_window);
  }
}

void Congestion::on_rewind(uint64_t now_ns) { shrink(now_ns, 50, limits_.least_window); }

void Congestion::on_timeout(uint64_t now_ns) {
  round_until_ns_ = 0;
  shrink(now_ns, 50, limits_.least_window);
  is_starting_ = true;  // nothing is known any more: find the feet again
}

void Congestion::on_idle() { window_x256_ = std::min(window_x256_, limits_.first_window * kScale); }

}  // namespace ringbolt::transport
