#include "link/peer_log.h"

#include <fmt/format.h>

#include <cstdlib>

#include "base/clock.h"

namespace ringbolt::link {
namespace {

constexpr uint64_t kPauseNs = 1'000'000'000;

bool is_debug_wanted() {
  const char* level = std::getenv("RINGBOLT_LOG");
  return level != nullptr && std::string_view(level) == "debug";
}

}  // namespace

PeerLog::PeerLog() : is_on_(is_debug_wanted()) {}

void PeerLog::dropped(uint32_t own_slot, pid_t pid, std::string_view reason) {
  if (!is_on_) {
    return;
  }
  const uint64_t now = base::now_ns();
  if (now < next_ns_) {
    ++kept_back_;
    return;
  }
  fmt::print(stderr, "ringbolt: slot {}: dropped a connection of process {}: {} ({} more since the last such line)\n",
             own_slot, pid, reason, kept_back_);
  next_ns_ = now + kPauseNs;
  kept_back_ = 0;
}

}  // namespace ringbolt::link
