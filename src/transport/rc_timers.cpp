// What a requester does when nothing comes back.

#include <algorithm>

#include "transport/rc_requester.h"

namespace ringbolt::transport {
namespace {

constexpr uint64_t kNever = UINT64_MAX;
// A probe's patience doubles up to 2^6 times.
constexpr uint32_t kMostDoublings = 6;
// A probe is newer than all that went before by more than any reordering explains.
constexpr uint32_t kProbeOrderStep = 16;

}  // namespace

uint64_t RcRequester::probe_deadline_ns() const {
  return is_selective_ ? activity_at_ns_ + (congestion_.patience_ns() << std::min(probes_in_row_, kMostDoublings))
                       : kNever;
}

uint64_t RcRequester::next_deadline_ns() const {
  if (failure_ || (resume_at_ns_ == 0 && next_ == oldest_)) {
    return kNever;
  }
  if (resume_at_ns_ != 0) {
    return resume_at_ns_;
  }
  return std::min(timeout_ns_ == 0 ? kNever : progress_at_ns_ + timeout_ns_, probe_deadline_ns());
}

void RcRequester::excuse(uint64_t until_ns) {
  if (until_ns > activity_at_ns_) {
    activity_at_ns_ = until_ns;
    ++probes_in_row_;  // the longer it lasts, the less often we need to ask
  }
  progress_at_ns_ = std::max(progress_at_ns_, until_ns);
}

void RcRequester::on_timer(uint64_t now_ns) {
  if (now_ns < next_deadline_ns()) {
    return;
  }
  if (resume_at_ns_ != 0) {
    resume_at_ns_ = 0;
    progress_at_ns_ = now_ns;
    activity_at_ns_ = now_ns;
  } else if (timeout_ns_ != 0 && now_ns >= progress_at_ns_ + timeout_ns_) {
    on_transport_timeout(now_ns);
  } else {
    probe(now_ns);
  }
}

void RcRequester::on_transport_timeout(uint64_t now_ns) {
  ++counters_.timeouts;
  if (retries_left_ == 0) {
    fail(RequesterFailure::retry_exceeded);
    return;
  }
  // What the peer said it holds it may have thrown away since (it may, until it acknowledges): believe it once.
  const bool is_first = retries_left_ == attributes_.retry_count;
  --retries_left_;
  progress_at_ns_ = now_ns;
  activity_at_ns_ = now_ns;
  has_seen_gap_ = false;
  rewind(oldest_, is_selective_ && is_first);
  congestion_.on_timeout(now_ns);
}

/// The newest packet that nobody has confirmed shows what is missing before it, and the oldest repairs the most likely
/// loss, or draws the answer that was lost.
void RcRequester::probe(uint64_t now_ns) {
  ++probes_in_row_;
  ++counters_.probes;
  activity_at_ns_ = now_ns;
  send_order_ += kProbeOrderStep;
  const auto is_candidate = [this](uint64_t at) { return !delivered_.test(at) && !lost_.test(at); };
  uint64_t first = oldest_;
  while (first < next_ && !is_candidate(first)) {
    ++first;
  }
  uint64_t last = next_;
  while (last > first && !is_candidate(last - 1)) {
    --last;
  }
  if (first < last) {
    lost_.set(first);
    lost_.set(last - 1);
  }
}

/// Nothing is sent or heard from here on.
void RcRequester::fail(RequesterFailure why) { failure_ = Failure{completed_, why}; }

}  // namespace ringbolt::transport
