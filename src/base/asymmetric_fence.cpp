#include "base/asymmetric_fence.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ringbolt::base {
namespace {

// No function of the C library has it (membarrier(2)).
bool membarrier(int command) { return syscall(SYS_membarrier, command, 0U, 0) == 0; }

}  // namespace

bool has_asymmetric_fences() {
  // Thread sanitizer knows nothing of what the kernel orders.
#if defined(__SANITIZE_THREAD__)
  return false;
#else
  // The global command reaches other processes too, as long as they have registered: queue pairs share memory across
  // processes. It is of Linux 4.16; a seccomp filter may forbid it.
  static const bool is_registered = membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);
  return is_registered;
#endif
}

void heavy_fence() {
  // Where the kernel lacks the call this is all: the frequent side then fences fully itself, or is looked at by time.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (has_asymmetric_fences()) {
    // Cannot fail for a process that has registered: the kernel knows the command, and takes no flags.
    membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
  }
}

}  // namespace ringbolt::base
