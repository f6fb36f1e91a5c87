#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bootstrap/config.h"
#include "bootstrap/connection.h"

namespace ringbolt::bootstrap {

/// Any rank but 0: calls rank 0 until it answers, and waits there for the others. Blocks until `deadline_ns`
/// (base::now_ns()). Throws base::Error: refused, the rendezvous failed, or the deadline passed; it says who is missing
/// as far as rank 0 has said. The connection's frames carry tags. `config` and `key` are only used until it returns.
Connection call_root(const Config& config, const Key& key, uint64_t deadline_ns);

/// Behind the names of ranks that have not come, or do not answer: what to look at.
inline constexpr const char* kIfMissing = " (not started, ended, or meeting elsewhere? look at its output)";
inline constexpr const char* kIfStopped = " (stopped, in a debugger, or stuck in a driver?)";

/// Rank 0 says whom all wait for at each change, and again after so long: then others can tell that it is alive.
inline constexpr uint64_t kRosterAgainNs = 500'000'000;
/// Who has heard nothing of a waiting rank 0 for so long, two rosters and a bit, says so.
inline constexpr uint64_t kSilentNs = 1'250'000'000;
/// Whom a rank waits for: `who`, as rank 0 said last, at `heard_ns`; or rank 0 itself, if it has said nothing since.
std::string whom_it_waits_for(const std::string& who, uint64_t heard_ns);

/// Who is missing in a roster of `n_ranks` ranks.
std::vector<uint32_t> missing_in(std::span<const std::byte> mask, uint32_t n_ranks);

}  // namespace ringbolt::bootstrap
