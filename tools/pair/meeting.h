#pragma once

#include <cstdint>
#include <string>

#include "base/unique_fd.h"

namespace ringbolt::tools::pair {

/// A connected TCP socket, and the other end's address for messages.
struct Meeting {
  base::UniqueFd fd;
  std::string peer;
};

/// Waits on all addresses of this machine for one client. Throws ProbeFailure if none comes in time, or the port is
/// taken.
Meeting await_client(uint16_t port, double timeout_s);

/// Connects to a server. While nothing listens there yet, tries again for two seconds. Throws ProbeFailure naming host,
/// port and the subcommand that should wait there.
Meeting go_to_server(const std::string& command, const std::string& host, uint16_t port, double timeout_s);

}  // namespace ringbolt::tools::pair
