#pragma once

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/unique_fd.h"

// pidfd_open(2) and pidfd_send_signal(2) by their numbers: C libraries have had functions for them since glibc 2.36
// only.

namespace ringbolt::base {

/// A descriptor for the process, closed on exec, readable once it has ended; not open, with errno, when there is no
/// such process (ESRCH), or no descriptor left.
inline UniqueFd open_process(pid_t pid) { return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }

/// Never hits another process that has got the number since. False, with errno: it has ended (ESRCH), or is not ours.
inline bool signal_process(int descriptor, int signal) {
  return ::syscall(SYS_pidfd_send_signal, descriptor, signal, nullptr, 0) == 0;
}

}  // namespace ringbolt::base
