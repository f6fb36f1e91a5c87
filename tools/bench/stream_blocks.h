#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "bench/two_processes.h"

namespace ringbolt::tools::bench {

/// What carries the bytes between two processes of this machine, and whether who waits sleeps.
enum class Carrier { stream, stream_zero_copy, unix_socket, tcp, eventfd };
struct Way {
  Carrier carrier = Carrier::stream;
  bool spins = false;
};
std::string text(const Way& way);  ///< "stream, spinning"

/// Round trips of one message. An eventfd carries a counter: what waking a process costs at least. `verbs`: the
/// library, empty: as the environment says. Throws FoundProblem: it can't be measured, and why.
BlockFigures ping_pong_block(const Way& way, size_t bytes, uint64_t block_ns, const std::string& verbs);

/// From writing the first of pieces of 256 KiB to knowing that the last was read; stream_zero_copy: from registered
/// memory, and read in place. Throws likewise.
BlockFigures bandwidth_block(const Way& way, uint64_t block_ns, const std::string& verbs);

}  // namespace ringbolt::tools::bench
