#pragma once

#include <cstdint>

namespace ringbolt::rsocket {

/// When to ask whether the peer is still there: after so long without a word of it. Times are of base::now_ns(). Not
/// thread-safe: under the socket's lock.
/// Source: tcp(7), TCP_KEEPIDLE.
class Keepalive {
 public:
  /// The peer has said something, or has been asked.
  void restart(uint64_t now_ns) { heard_at_ns_ = now_ns; }
  /// `idle_s`: seconds, above 0.
  bool is_due(uint64_t now_ns, int idle_s) const {
    return now_ns - heard_at_ns_ >= static_cast<uint64_t>(idle_s) * 1'000'000'000U;
  }

 private:
  uint64_t heard_at_ns_ = 0;
};

}  // namespace ringbolt::rsocket
