#pragma once

#include <cstdint>

#include "device/limits.h"

namespace ringbolt::device {

/// Since when somebody has looked whether a peer answers. Time in which nobody did, as the program was stopped or did
/// not poll, is no silence of the peer's: it may sleep, and who looks is who rings it. Not thread-safe.
class Vigil {
 public:
  static constexpr uint64_t kLongestGapNs = 200'000'000;  ///< several ticks of the service thread

  /// It has answered, or something new was asked of it.
  void begin(uint64_t now_ns) {
    since_ns_ = looked_ns_ = now_ns;
    has_begun_anew_ = false;
  }
  /// Somebody looks. After a gap the vigil begins anew, once: who looks now and then gets to an end, too.
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
