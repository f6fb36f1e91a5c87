#pragma once

#include <cstdint>

#include "bootstrap/config.h"
#include "bootstrap/connection.h"

namespace ringbolt::bootstrap {

/// Any rank but 0: calls rank 0 until it answers, and waits there for the others. Blocks until `deadline_ns`
/// (base::now_ns()). Throws base::Error: refused, the rendezvous failed, or the deadline passed; it says who is missing
/// as far as rank 0 has said. The connection's frames carry tags. `config` and `key` are only used until it returns.
Connection call_root(const Config& config, const Key& key, uint64_t deadline_ns);

/// Who is missing in a roster of `n_ranks` ranks.
std::vector<uint32_t> missing_in(std::span<const std::byte> mask, uint32_t n_ranks);

}  // namespace ringbolt::bootstrap
