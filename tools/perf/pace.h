#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"
#include "failure.h"
#include "pair/peer.h"
#include "perf/link.h"
#include "perf/parameters.h"
#include "stop.h"

namespace ringbolt::tools::perf {

/// When a run is long enough: after so many operations or so much time, and never before kLeastRunNs; bounded, with the
/// first of both, after one operation at least; or with the first operation after somebody wants it to stop. Not
/// thread-safe.
class Pace {
 public:
  explicit Pace(const Parameters& parameters)
      : iterations_(parameters.iterations),
        is_bounded_(parameters.most_s > 0),
        span_ns_(is_bounded_ ? static_cast<uint64_t>(parameters.most_s * 1e9)
                             : std::max(kLeastRunNs, static_cast<uint64_t>(parameters.duration_s * 1e9))) {}

  /// Before the first wants_more(). `now_ns`: of base::now_ns().
  void begin(uint64_t now_ns) { end_ns_ = now_ns + span_ns_; }

  /// Whether another operation is wanted after `done` of them. Hot path: looks at the clock every 16th time only.
  bool wants_more(uint64_t done) {
    // One at least, so that every figure is of something. It stays over, also where more time would be left.
    is_over_ = is_over_ || (done > 0 && (is_stopped() || (is_bounded_ && done >= iterations_)));
    if (is_over_ || done < (is_bounded_ ? 1 : iterations_)) {
      return !is_over_;
    }
    constexpr uint32_t kSkipped = 16;
    if (calls_++ % kSkipped == 0 && base::now_ns() >= end_ns_) {
      is_over_ = true;
    }
    return !is_over_;
  }

 private:
  uint64_t iterations_;
  bool is_bounded_;
  uint64_t span_ns_;
  uint64_t end_ns_ = 0;
  uint32_t calls_ = 0;
  bool is_over_ = false;
};

/// A wait in a polling loop: bounded, and it notices at once when the peer is gone. Not thread-safe.
class Patience {
 public:
  /// `what`: the awaited, for messages; lives as long as this.
  Patience(Link& link, Peer& peer, const char* what) : link_(link), peer_(peer), what_(what) {}

  /// After a poll that brought something.
  void renew() {
    fruitless_ = 0;
    since_ns_ = 0;
  }

  /// After a poll that brought nothing. Mostly cheap. Returns true when it has looked at the clock and the peer, which
  /// is the time for the caller to look at rare things too. Throws ProbeFailure when the peer is gone or has failed,
  /// or nothing came for as long as the peer may be awaited; or, of a bounded run that is to stop, for a second.
  bool wait() {
    constexpr uint32_t kCheap = 256;
    constexpr uint64_t kStoppedNs = 1'000'000'000;  // who stops `matrix` is not after what may still come
    link_.doze();
    if (++fruitless_ % kCheap != 0 && !link_.has_events()) {
      return false;
    }
    const uint64_t now = base::now_ns();
    since_ns_ = since_ns_ == 0 ? now : since_ns_;
    (void)peer_.look("nothing", what_);
    if (is_stopped() && link_.parameters().most_s > 0 && now - since_ns_ > kStoppedNs) {
      throw ProbeFailure("it was interrupted");
    }
    if (peer_.left_ns(since_ns_) == 0) {
      peer_.give_up(what_, now - since_ns_);
    }
    return true;
  }

  /// How long nothing has come until now, from the first look at the clock on; 0: there was none since something came.
  uint64_t silent_ns() const { return since_ns_ == 0 ? 0 : base::now_ns() - since_ns_; }

 private:
  Link& link_;
  Peer& peer_;
  const char* what_;
  uint32_t fruitless_ = 0;
  uint64_t since_ns_ = 0;
};

}  // namespace ringbolt::tools::perf
