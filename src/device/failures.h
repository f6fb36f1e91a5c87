#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/explain.h"
#include "device/drops.h"
#include "device/inbox.h"
#include "device/peer_notes.h"
#include "link/region_table.h"

/// Why work requests end in errors, in words, for RINGBOLT_EXPLAIN. Pure, but for the clock.
namespace ringbolt::device {

/// "IBV_WC_REM_ACCESS_ERR".
std::string text_of(ibv_wc_status status);
/// "12 ms ago".
std::string age_text(uint64_t since_ns);
/// "IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ"; "no access" of none.
std::string access_text(uint32_t access);

/// Somebody wanted bytes by a key that does not allow it.
struct KeyUse {
  const char* name = "rkey";  ///< or "lkey"
  uint32_t key = 0;
  uint64_t address = 0;
  uint64_t length = 0;
  uint32_t access = 0;     ///< that was needed
  uint32_t pd_key = 0;     ///< of the queue pair at whose side the memory is
  uint32_t qpn = 0;        ///< likewise
  pid_t owner = 0;         ///< the process whose memory it is
  bool is_of_peer = true;  ///< for who is told: the memory is the other side's
};

/// `found`: what the owner's table has under that key, if anything. `gone`: the note of a region that had it. `own`:
/// whether the key is one of the requester's own; `is_reversed`: whether the owner has one with its bytes in reverse.
base::Explanation why_key_refused(const KeyUse& use, const std::optional<link::Region>& found,
                                  const std::optional<PeerNotes::Note>& gone, bool is_own, bool is_reversed);

/// A datagram that a queue pair in `state` does not take.
base::Explanation why_dropped(Drop why, ibv_qp_state state);
/// "queue pair 0x12 at ::ffff:10.0.0.7": who has sent it.
std::string source_text(const wire::PacketView& view, const wire::Flow& flow);

/// The general remedy where nothing more is known.
std::string remedy_of(ibv_wc_status status);

}  // namespace ringbolt::device
