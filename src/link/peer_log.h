#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string_view>

#include "base/debug_log.h"

namespace ringbolt::link {

/// Lines about misbehaving connections on stderr, when RINGBOLT_LOG=debug, at most one a second. Not thread-safe.
class PeerLog {
 public:
  PeerLog();
  /// "ringbolt: slot <own_slot>: dropped a connection of process <pid>: <reason>"
  void dropped(uint32_t own_slot, pid_t pid, std::string_view reason);

 private:
  const bool is_on_;
  base::LinePace pace_;
  uint64_t kept_back_ = 0;
};

}  // namespace ringbolt::link
