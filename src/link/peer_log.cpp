#include "link/peer_log.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "base/debug_log.h"
#include "base/say.h"

namespace ringbolt::link {

PeerLog::PeerLog() : is_on_(base::is_debug_log_wanted()) {}

void PeerLog::dropped(uint32_t own_slot, pid_t pid, std::string_view reason) {
  if (!is_on_) {
    return;
  }
  const uint64_t now = base::now_ns();
  if (!pace_.may_say(now)) {
    ++kept_back_;
    return;
  }
  base::say(
      fmt::format("ringbolt: slot {}: dropped a connection of process {}: {} ({} more since the last such line)\n",
                  own_slot, pid, reason, kept_back_));
  kept_back_ = 0;
}

}  // namespace ringbolt::link
