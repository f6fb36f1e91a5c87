#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "commands.h"

namespace ringbolt::tools::bench {

/// What one block of a series has found; 0 where it does not measure that.
struct BlockFigures {
  double p50_us = 0;
  double p99_us = 0;
  double gbytes_per_s = 0;  ///< 10^9 bytes
};

/// Runs both in processes of their own, which nothing of ours ran in before, `serve` on core 0 and `call` on core 1
/// where there are such, each with its end of a UNIX stream socket; answers what `call` does. Throws FoundProblem in
/// the words of the one that throws, or after `limit_ms`, when both are killed. For a process of one thread.
BlockFigures in_two_processes(const std::function<void(int socket)>& serve,
                              const std::function<BlockFigures(int socket)>& call, uint64_t limit_ms);

/// All of it, over a descriptor that blocks. Throws FoundProblem: the other end has gone.
void write_whole(int fd, const void* data, size_t bytes);
/// Likewise; `spins`: asks again and again instead of sleeping, which only sockets can.
void read_whole(int fd, void* data, size_t bytes, bool spins = false);

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

/// `bench stream`: streams beside UNIX sockets and TCP between two processes of this machine. Exit status. Throws
/// UsageError and FoundProblem.
int bench_streams(const BenchOptions& options);

}  // namespace ringbolt::tools::bench
