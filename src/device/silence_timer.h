#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <cstdint>

#include "device/limits.h"

namespace ringbolt::device {

/// How long RC waits for an answer, all retries together: what the attributes say, and no less than a process may be
/// off its core (InfiniBand Architecture Specification 1.4, 9.7.6.1.3: 4.096 us times 2 to the power of `timeout`).
/// In ns. `timeout` 0, which stands for ever, is the caller's to look at.
inline uint64_t transport_timeout_ns(const ibv_qp_attr& attributes) {
  const uint64_t once = 4096ULL << attributes.timeout;
  return std::max<uint64_t>(kLeastTimeoutNs, once * (attributes.retry_cnt + 1ULL));
}

/// For how long a peer has been silent while somebody looked. Time in which nobody did, as the program was stopped or
/// did not poll, is no silence of the peer's: it may sleep, and who looks is who rings it. Not thread-safe.
class SilenceTimer {
 public:
  static constexpr uint64_t kLongestGapNs = 200'000'000;  ///< several ticks of the service thread

  /// It has answered, or something new was asked of it.
  void begin(uint64_t now_ns) {
    since_ns_ = looked_ns_ = now_ns;
    has_begun_anew_ = false;
  }
  /// Somebody looks. After a gap it begins anew, once: who looks now and then gets to an end, too.
  void look(uint64_t now_ns) {
    if (!has_begun_anew_ && now_ns > looked_ns_ + kLongestGapNs) {
      since_ns_ = now_ns;
      has_begun_anew_ = true;
    }
    looked_ns_ = now_ns;
  }
  /// The peer has had the least time that any peer gets.
  bool is_long_enough(uint64_t now_ns) const { return now_ns >= since_ns_ + kLeastTimeoutNs; }

 private:
  uint64_t since_ns_ = 0;
  uint64_t looked_ns_ = 0;
  bool has_begun_anew_ = false;
};

}  // namespace ringbolt::device
