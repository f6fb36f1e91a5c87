#pragma once

// Hot path: no allocation, lock, clock or I/O per packet.

#include <cstdint>

#include "transport/sequence.h"

namespace ringbolt::transport {

/// How far a UC requester may run ahead of its peer. UC knows no acknowledgement, and on a NIC it needs a network that
/// loses nothing; over plain UDP a fast sender overruns the receiver's socket. Between own peers (wire/greeting.h) the
/// receiver reports how far it is, when asked by AckReq, and the sender keeps to a window. Nothing is repeated: a
/// report that does not come is taken for granted after a while. With strangers there is no window. Not
/// thread-safe.
/// Used under the queue pair's lock for sending. Times in ns of the caller's clock.
class UcWindow {
 public:
  struct Limits {
    uint32_t packets = 64;             ///< ahead of what the peer has reported
    uint32_t packets_per_report = 16;  ///< a power of two
    /// For a report: longer than a window takes on a slow cable with a queue before it (8 ms at 250 Mbit/s), since what
    /// is sent too early is lost in that queue. Only when four reports in a row are lost is it waited for.
    uint64_t patience_ns = 40'000'000;
  };

  explicit UcWindow(uint32_t first_psn) : UcWindow(first_psn, Limits()) {}
  UcWindow(uint32_t first_psn, const Limits& limits) : limits_(limits), next_(first_psn), reported_(first_psn) {}

  /// The peer answers AckReq.
  void enable() {
    if (!is_enabled_) {
      is_enabled_ = true;
      reported_ = next_;
    }
  }
  bool may_send(uint64_t now_ns) {
    if (!is_enabled_ || psn_distance(next_, reported_) < static_cast<int32_t>(limits_.packets)) {
      return true;
    }
    if (blocked_since_ns_ == 0) {
      blocked_since_ns_ = now_ns;
    }
    if (now_ns - blocked_since_ns_ < limits_.patience_ns) {
      return false;
    }
    on_report(next_);
    return true;
  }
  /// The packet that goes out next has this PSN; true: ask for a report with it.
  bool on_sent(uint32_t psn) {
    next_ = psn_add(psn, 1);
    return is_enabled_ && next_ % limits_.packets_per_report == 0;
  }
  /// The peer is done with all before `psn`. What was never sent is ignored.
  void on_report(uint32_t psn) {
    if (psn_distance(psn, reported_) > 0 && psn_distance(next_, psn) >= 0) {
      reported_ = psn;
      blocked_since_ns_ = 0;
    }
  }
  /// Nobody is there who could report.
  void let_go() { on_report(next_); }
  /// When may_send() is to be asked again without a report; UINT64_MAX: it isn't waiting.
  uint64_t next_deadline_ns() const {
    return blocked_since_ns_ == 0 ? UINT64_MAX : blocked_since_ns_ + limits_.patience_ns;
  }

 private:
  Limits limits_;
  uint32_t next_;
  uint32_t reported_;
  uint64_t blocked_since_ns_ = 0;
  bool is_enabled_ = false;
};

}  // namespace ringbolt::transport
