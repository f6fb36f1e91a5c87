// The part of the interface between libibverbs and kernel drivers' user-space halves that must do more than refuse.
// A distribution's libmlx5 and libefa come into the process with many programs and register themselves on load; since
// no device of ours is theirs, they are never asked for anything.

#include <infiniband/verbs.h>

#include <cerrno>

#include "base/c_border.h"

namespace {

// As the kernel's sysfs counts them, which is not how ibv_gid_type counts.
enum GidTypeInSysfs : int { kIbOrRoceV1 = 0, kRoceV2 = 1 };

}  // namespace

extern "C" {

/// A switch that drivers flip on load. Nothing reads it.
extern bool verbs_allow_disassociate_destroy;
bool verbs_allow_disassociate_destroy = false;

void verbs_register_driver_34(const void* /*driver*/) {}

/// How many attributes a chained command has: drivers size a buffer on the stack by it. No command ever comes here, for
/// a command needs a driver's context; a generous answer keeps even a stray caller inside its buffer.
unsigned int __ioctl_final_num_attrs(unsigned int num_attrs, const void* /*link*/) {
  constexpr unsigned int kMoreThanAnyChain = 256;
  return num_attrs + kMoreThanAnyChain;
}

/// The type of GID `index` in the kernel's numbers. An empty slot is of type 0, as in sysfs. Returns 0, or -1 with
/// errno.
int ibv_query_gid_type(ibv_context* context, uint8_t port_num, unsigned int index, int* type) try {
  ibv_gid_entry entry = {};
  const int error = ibv_query_gid_ex(context, port_num, index, &entry, 0);
  if (error == ENODATA) {
    *type = kIbOrRoceV1;
    return 0;
  }
  if (error != 0) {
    errno = error;
    return -1;
  }
  *type = entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? kRoceV2 : kIbOrRoceV1;
  return 0;
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

}  // extern "C"
