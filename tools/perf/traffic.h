#pragma once

#include <cstdint>
#include <optional>

#include "pair/peer.h"
#include "perf/initiator.h"
#include "perf/link.h"
#include "progress_line.h"

namespace ringbolt::tools::perf {

/// What a receiver has found out.
struct Receipt {
  uint64_t messages = 0;  ///< arrived and checked
  uint64_t lost = 0;
};

struct Sent {
  Timing timing;
  Receipt receipt;  ///< the receiver's
};

// The traffic of a bandwidth, at both ends at once; each may act, or serve the other, or both. Returns what this end
// has sent or fetched, if it does. Throws ProbeFailure.

/// SEND and WRITE.
/// Over RC, and where nothing may be lost, whatever is missing or damaged throws.
std::optional<Sent> stream(Link& link, Peer& peer, bool sends, bool receives, Progress& progress);
/// READ and atomics.
std::optional<Sent> fetch(Link& link, Peer& peer, bool fetches, bool is_target, Progress& progress);

/// How often who is busy looks at rare things: whether to say that it is still at it, or how far it is.
inline constexpr uint32_t kRareTurns = 4096;
/// What is awaited then.
inline constexpr const char* kLastMessage = "its last message";
/// How far it is, if it is time to.
void show(Progress& progress, const Link& link, uint64_t messages, const char* what);

}  // namespace ringbolt::tools::perf
