#include "base/asymmetric_fence.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ringbolt::base {
namespace {

bool membarrier(int command) { return syscall(SYS_membarrier, command, 0U, 0) == 0; }

}  // namespace

bool has_asymmetric_fences() {
  // Thread sanitizer knows nothing of what the kernel orders.
#if defined(__SANITIZE_THREAD__)
  return false;
#else
  static const bool is_registered = membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);
  return is_registered;
#endif
}

void heavy_fence() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (has_asymmetric_fences()) {
    membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
  }
}

}  // namespace ringbolt::base
