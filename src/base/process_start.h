#pragma once

#include <sys/types.h>

#include <cstdint>

namespace ringbolt::base {

/// When the process began, in clock ticks since the machine's start: with the pid it names a process for good. 0 when it
/// is gone or can't be looked at. Thread-safe.
uint64_t process_start(pid_t pid);

/// Whether the process that had `pid` and began at `start` still runs; true too when that can't be found out, as with a
/// `start` of 0.
/// Thread-safe.
bool is_same_process(pid_t pid, uint64_t start);

}  // namespace ringbolt::base
