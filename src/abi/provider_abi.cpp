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

// The same at the nodes of other numbers, as symbols.txt has them. They have addresses of their own, for the linker
// drops a default version that lies where another version lies.

extern bool ringbolt_elsewhere_verbs_allow_disassociate_destroy;
bool ringbolt_elsewhere_verbs_allow_disassociate_destroy = false;

unsigned int ringbolt_elsewhere___ioctl_final_num_attrs(unsigned int num_attrs, const void* link) {
  return __ioctl_final_num_attrs(num_attrs, link);
}

int ringbolt_elsewhere_ibv_query_gid_type(ibv_context* context, uint8_t port_num, unsigned int index, int* type) try {
  return ibv_query_gid_type(context, port_num, index, type);
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

}  // extern "C"

#define RINGBOLT_AT_NODE(name, number)                                                       \
  asm(".globl ringbolt_again_" #number "_" #name "\n.set ringbolt_again_" #number "_" #name  \
      ", ringbolt_elsewhere_" #name "\n.symver ringbolt_again_" #number "_" #name ", " #name \
      "@IBVERBS_PRIVATE_" #number)
#define RINGBOLT_AT_OTHER_NODES(name) \
  RINGBOLT_AT_NODE(name, 57);         \
  RINGBOLT_AT_NODE(name, 25);         \
  RINGBOLT_AT_NODE(name, 33);         \
  RINGBOLT_AT_NODE(name, 59);         \
  RINGBOLT_AT_NODE(name, 65)
RINGBOLT_AT_OTHER_NODES(ibv_query_gid_type);
RINGBOLT_AT_OTHER_NODES(__ioctl_final_num_attrs);
RINGBOLT_AT_OTHER_NODES(verbs_allow_disassociate_destroy);
#undef RINGBOLT_AT_NODE
#undef RINGBOLT_AT_OTHER_NODES
