// What this process holds, read from /proc/self: the measure for leaks.
#pragma once

#include <cstddef>

namespace ringbolt::chaos {

/// Descriptors, threads, mappings of shared memory, all mappings, and resident memory.
struct ProcessCounts {
  std::size_t fds = 0;
  std::size_t threads = 0;
  std::size_t shared_maps = 0;
  std::size_t maps = 0;
  std::size_t rss_kib = 0;

  /// True when nothing that must be given back differs; memory is left out because allocators keep some.
  bool holds_as_much_as(const ProcessCounts& other) const {
    return fds == other.fds && threads == other.threads && shared_maps == other.shared_maps;
  }
};

/// Reads the counts now.
ProcessCounts count_process();

/// Reads the counts until they stay as they are for 100 ms, for at most 3 s: a service thread may still be tidying up.
ProcessCounts count_settled_process();

}  // namespace ringbolt::chaos
