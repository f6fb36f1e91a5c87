#pragma once

#include <cstdint>

namespace ringbolt::stream {

/// What one stream has seen. A value.
struct Statistics {
  uint64_t bytes_sent = 0;
  uint64_t bytes_received = 0;
  uint64_t messages_sent = 0;           ///< WRITEs, with immediate data or without
  uint64_t messages_received = 0;       ///< with immediate data: others are not seen
  uint64_t empty_messages = 0;          ///< of no bytes, among those received
  uint64_t announcements_sent = 0;      ///< of our receive buffer; all but the first are re-registrations
  uint64_t announcements_received = 0;  ///< likewise of the peer's
  uint64_t early_announcements = 0;     ///< before its buffer was full
  uint64_t stalls = 0;                  ///< times that a writer waited for the peer to announce its buffer anew
  uint64_t stall_ns = 0;                ///< and for how long
  uint64_t keepalives_sent = 0;
  uint64_t keepalives_skipped = 0;  ///< the peer had not taken several before
  uint64_t keepalives_received = 0;
  uint64_t receives_reposted = 0;
  uint64_t bytes_arrived = 0;  ///< of those sent: known to be in the peer's memory; lags behind, as few writes tell
  friend bool operator==(const Statistics&, const Statistics&) = default;
};

}  // namespace ringbolt::stream
