// Hot path: see repeats.h.
#include "circuit/repeats.h"

#include <algorithm>

namespace ringbolt::circuit {

void Repeats::hear(uint32_t taken, uint32_t come, uint64_t now_ns) {
  // An old answer that was under way for long, or one about frames that were never sent: no frame counts as come by
  // it.
  if (static_cast<int32_t>(taken - n_taken_) < 0 || static_cast<int32_t>(n_sent_ - taken) < 0) {
    return;
  }
  heard_ns_ = now_ns;
  awaits_greeting_ = false;  // this says as much as its answer
  bool has_news = false;
  uint32_t latest = 0;  // of the posts that have come, counted from 1
  const auto note = [&](uint32_t number) {
    Frame& one = frame(number);
    if (!one.has_come) {
      one.has_come = true;
      one.is_lost = false;
      has_news = true;
      latest = std::max(latest, one.post + 1);
    }
  };
  for (; n_taken_ != taken; ++n_taken_) {
    note(n_taken_);
  }
  for (uint32_t n = taken; n != n_sent_; ++n) {
    if ((come >> (n - taken) & 1U) != 0) {
      note(n);
    }
  }
  if (!has_news) {
    return;
  }
  for (uint32_t n = n_taken_; n != n_sent_; ++n) {
    Frame& one = frame(n);
    // `post` counts repetitions as well: one that was sent again after the latest that has come is still on its way.
    one.is_lost = one.is_lost || (!one.has_come && one.post + 1 < latest);
  }
  begin_wait(now_ns);
}

Repeats::Due Repeats::take_due(uint64_t now_ns) {
  uint32_t oldest_missing = n_sent_;
  for (uint32_t n = n_taken_; n != n_sent_; ++n) {
    if (frame(n).is_lost) {
      return repeat(n);
    }
    if (!frame(n).has_come && oldest_missing == n_sent_) {
      oldest_missing = n;
    }
  }
  if (awaits_greeting_ || oldest_missing != n_sent_) {
    if (now_ns < deadline_ns_) {
      return {};
    }
    if (n_tries_ == kMostTries) {
      return {What::give_up, oldest_missing};
    }
    // The shift is bounded by kMostTries.
    deadline_ns_ = now_ns + (kFirstWaitNs << ++n_tries_);
    return awaits_greeting_ ? Due{What::greeting} : repeat(oldest_missing);
  }
  if (heard_ns_ != 0 && now_ns - heard_ns_ >= (n_taken_ != n_sent_ ? kAskNs : kKeepWarmNs)) {
    // From here on its answer is awaited like that of the first one.
    note_greeting(now_ns);
    return {What::greeting};
  }
  return {};
}

}  // namespace ringbolt::circuit
