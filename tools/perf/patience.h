#pragma once

#include <cstdint>

#include "base/clock.h"
#include "pair/peer.h"
#include "perf/link.h"

namespace ringbolt::tools::perf {

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
  /// or nothing came for as long as the peer's timeout.
  bool wait() {
    constexpr uint32_t kCheap = 256;
    link_.doze();
    if (++fruitless_ % kCheap != 0 && !link_.has_events()) {
      return false;
    }
    const uint64_t now = base::now_ns();
    since_ns_ = since_ns_ == 0 ? now : since_ns_;
    (void)peer_.look("nothing", what_);
    if (now - since_ns_ > peer_.timeout_ns()) {
      peer_.give_up(what_, now - since_ns_);
    }
    return true;
  }

  /// How long nothing came, as of the last look at the clock.
  uint64_t silent_ns() const { return since_ns_ == 0 ? 0 : base::now_ns() - since_ns_; }

 private:
  Link& link_;
  Peer& peer_;
  const char* what_;
  uint32_t fruitless_ = 0;
  uint64_t since_ns_ = 0;
};

}  // namespace ringbolt::tools::perf
