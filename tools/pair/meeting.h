#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "base/unique_fd.h"
#include "commands.h"
#include "pair/peer.h"

namespace ringbolt::tools::pair {

/// Why no host of that name can be found; empty: it can. Asks the name service.
std::string objection_to_host(const std::string& host);

/// A connected TCP socket, and the other end's address for messages.
struct Meeting {
  base::UniqueFd fd;
  std::string peer;
};

/// Goes to the host of the options, and tries again for two seconds while nothing listens there yet; without a host
/// waits on all addresses of this machine for one client, and says so. Throws ProbeFailure naming host, port and the
/// subcommand `command` that should wait there, or what else kept the ends from meeting in time.
Meeting meet(const std::string& command, const PairOptions& options);

/// The other end of a meeting, which outlives it. `timeout_ns`: the most for one wait.
Peer peer_at(const Meeting& meeting, uint64_t timeout_ns);

/// Of a process of --nodes: the other end, at the channel that the options name or at input and output; and where such
/// a process says what came of it, for who started it to read.
Peer peer_of_end(const EndOptions& options, uint64_t timeout_ns);
std::FILE* output_of_end(const EndOptions& options);

}  // namespace ringbolt::tools::pair
