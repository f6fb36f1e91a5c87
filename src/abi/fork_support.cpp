// fork() with registered memory. A NIC reads physical pages, which copy-on-write takes away from the parent; the stock
// library marks them MADV_DONTFORK. Our device moves data with the processor, through page tables, so a parent's
// registrations stay valid whatever its children write.

#include <infiniband/verbs.h>

#include <cstddef>

extern "C" {

int ibv_fork_init() { return 0; }

ibv_fork_status ibv_is_fork_initialized() { return IBV_FORK_UNNEEDED; }

int ibv_dontfork_range(void* /*base*/, size_t /*size*/) { return 0; }

int ibv_dofork_range(void* /*base*/, size_t /*size*/) { return 0; }

}  // extern "C"
