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

/// Whom a rank waits for: `who`, as rank 0 said last, at `heard_ns`; or rank 0 itself, if it has said nothing for
/// `silent_ms` since (Config::silent_ms).
std::string whom_it_waits_for(const std::string& who, uint64_t heard_ns, uint64_t silent_ms);

/// Who is missing in a roster of `n_ranks` ranks.
std::vector<uint32_t> missing_in(std::span<const std::byte> mask, uint32_t n_ranks);

}  // namespace ringbolt::bootstrap
