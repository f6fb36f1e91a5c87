#pragma once

#include <rdma/rdma_cma.h>

#include <cstddef>
#include <cstdint>

namespace ringbolt::verbs {

/// The functions of one connection manager's library, found by name at run time. What <rdma/rdma_cma.h> has inline
/// (rdma_get_local_addr and the like) needs none. Plain data: tests may fill it with functions of their own. Never null
/// in an opened ConnectionManager.
struct CmCalls {
  rdma_event_channel* (*create_event_channel)() = nullptr;
  void (*destroy_event_channel)(rdma_event_channel*) = nullptr;
  int (*get_cm_event)(rdma_event_channel*, rdma_cm_event**) = nullptr;
  int (*ack_cm_event)(rdma_cm_event*) = nullptr;
  // As in rdma_cma(7): -1 with errno unless it says otherwise; threads as there.
  int (*create_id)(rdma_event_channel*, rdma_cm_id**, void*, rdma_port_space) = nullptr;
  int (*destroy_id)(rdma_cm_id*) = nullptr;
  int (*migrate_id)(rdma_cm_id*, rdma_event_channel*) = nullptr;
  int (*set_option)(rdma_cm_id*, int level, int name, void* value, size_t) = nullptr;
  int (*bind_addr)(rdma_cm_id*, sockaddr*) = nullptr;
  int (*listen)(rdma_cm_id*, int backlog) = nullptr;
  int (*resolve_addr)(rdma_cm_id*, sockaddr* source, sockaddr* target, int timeout_ms) = nullptr;
  int (*resolve_route)(rdma_cm_id*, int timeout_ms) = nullptr;
  int (*create_qp)(rdma_cm_id*, ibv_pd*, ibv_qp_init_attr*) = nullptr;
  void (*destroy_qp)(rdma_cm_id*) = nullptr;
  int (*connect)(rdma_cm_id*, rdma_conn_param*) = nullptr;
  int (*accept)(rdma_cm_id*, rdma_conn_param*) = nullptr;
  int (*reject)(rdma_cm_id*, const void* data, uint8_t length) = nullptr;
  int (*notify)(rdma_cm_id*, ibv_event_type) = nullptr;
  int (*disconnect)(rdma_cm_id*) = nullptr;
  const char* (*event_str)(rdma_cm_event_type) = nullptr;
};

}  // namespace ringbolt::verbs
