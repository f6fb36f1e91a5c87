#pragma once

#include <cstdint>
#include <map>

namespace ringbolt::bench {

/// Resident bytes of this process, shared ones included, as the kernel counts them (smaps_rollup, Rss).
/// Throws std::runtime_error.
int64_t resident_bytes();

/// The shared segments that this process has mapped: bytes by inode. A segment that is mapped twice counts once.
/// Throws std::runtime_error.
std::map<uint64_t, uint64_t> mapped_segments();

/// Processor time that all threads of this process have used, in microseconds.
int64_t cpu_time_us();

}  // namespace ringbolt::bench
