#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

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

}  // namespace ringbolt::tools::bench
