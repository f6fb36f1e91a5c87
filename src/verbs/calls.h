#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

struct ibv_buf;  // opaque; verbs.h of older releases does not name it

namespace ringbolt::verbs {

/// The functions of one verbs library, found by name at run time. Polling, posting and arming go through the inline
/// functions of the header instead. Plain data: tests may fill it with functions of their own. Signatures are those of
/// <infiniband/verbs.h> (rdma-core); whether a call may be made by several threads at once is for the library to say.
struct Calls {
  // The sixteen that every verbs library has, Apple's librdma included: never null in an opened Library.
  ibv_device** (*get_device_list)(int*) = nullptr;
  void (*free_device_list)(ibv_device**) = nullptr;
  const char* (*get_device_name)(ibv_device*) = nullptr;
  ibv_context* (*open_device)(ibv_device*) = nullptr;
  int (*close_device)(ibv_context*) = nullptr;
  ibv_pd* (*alloc_pd)(ibv_context*) = nullptr;
  int (*dealloc_pd)(ibv_pd*) = nullptr;
  ibv_cq* (*create_cq)(ibv_context*, int, void*, ibv_comp_channel*, int) = nullptr;
  int (*destroy_cq)(ibv_cq*) = nullptr;
  ibv_qp* (*create_qp)(ibv_pd*, ibv_qp_init_attr*) = nullptr;
  int (*modify_qp)(ibv_qp*, ibv_qp_attr*, int) = nullptr;
  int (*destroy_qp)(ibv_qp*) = nullptr;
  /// The shorter structure of old, with which ibv_port_attr begins: call query_port() below.
  int (*query_port)(ibv_context*, uint8_t, _compat_ibv_port_attr*) = nullptr;
  int (*query_gid)(ibv_context*, uint8_t, int, ibv_gid*) = nullptr;
  ibv_mr* (*reg_mr)(ibv_pd*, void*, size_t, int) = nullptr;
  int (*dereg_mr)(ibv_mr*) = nullptr;

  // May be null.
  int (*query_device)(ibv_context*, ibv_device_attr*) = nullptr;
  int (*query_qp)(ibv_qp*, ibv_qp_attr*, int, ibv_qp_init_attr*) = nullptr;
  ibv_comp_channel* (*create_comp_channel)(ibv_context*) = nullptr;
  int (*destroy_comp_channel)(ibv_comp_channel*) = nullptr;
  int (*get_cq_event)(ibv_comp_channel*, ibv_cq**, void**) = nullptr;
  void (*ack_cq_events)(ibv_cq*, unsigned) = nullptr;
  int (*get_async_event)(ibv_context*, ibv_async_event*) = nullptr;
  void (*ack_async_event)(ibv_async_event*) = nullptr;
  ibv_ah* (*create_ah)(ibv_pd*, ibv_ah_attr*) = nullptr;
  int (*destroy_ah)(ibv_ah*) = nullptr;
  /// Memory that the device shares with other processes (IBVERBS_1.17); freed by free_buf, not by dereg_mr.
  void* (*alloc_buf)(ibv_pd*, size_t, ibv_buf**) = nullptr;
  void (*free_buf)(ibv_buf*) = nullptr;
  /// What kind of GID, and of which interface, an entry of the table is (rdma-core 34 and later).
  int (*query_gid_ex)(ibv_context*, uint32_t port, uint32_t index, ibv_gid_entry*, uint32_t flags, size_t) = nullptr;
  const char* (*wc_status_str)(ibv_wc_status) = nullptr;
  /// Ringbolt's own library: base/in_place.h. 0, or a positive errno.
  int (*receive_in_place)(ibv_qp*) = nullptr;
  /// Ringbolt's own library: see ExpectedRefusals.
  void (*expect_refusals)(int) = nullptr;
};

/// What a call returned as 0 or a positive errno: some providers return errno, some its negative, some -1 and set
/// errno. `errno_after`: errno, set to 0 before the call; 0 where the call is known to return its error. A plain -1
/// without errno counts as EPERM.
inline int error_of(int returned, int errno_after) {
  if (returned >= 0) {
    return returned;
  }
  return returned == -1 && errno_after != 0 ? errno_after : -returned;
}

/// Asks for a port; what the library does not fill is zero. 0, or a positive errno. May block in the driver: see
/// DriverCall.
inline int query_port(const Calls& calls, ibv_context* context, uint8_t port, ibv_port_attr& attributes) {
  attributes = {};
  errno = 0;
  const int returned = calls.query_port(context, port, reinterpret_cast<_compat_ibv_port_attr*>(&attributes));
  return error_of(returned, errno);
}

}  // namespace ringbolt::verbs
