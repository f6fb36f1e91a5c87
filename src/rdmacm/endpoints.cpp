// rdma_create_ep and its companions: a synchronous identifier made in one call.

#include <rdma/rdma_verbs.h>

#include <cerrno>
#include <memory>
#include <utility>

#include "base/c_border.h"
#include "rdmacm/connection_manager.h"
#include "rdmacm/identifiers.h"

namespace ringbolt::rdmacm {
namespace {

// Not looked at by us; rdma-core's value.
constexpr int kStepMs = 2000;

/// With its queue pair, and whatever else was made for it.
struct DestroyEndpoint {
  void operator()(rdma_cm_id* c) const { rdma_destroy_ep(c); }
};

// 0 or an errno; the caller destroys the identifier.
int prepare_passive(Id& id, const rdma_addrinfo& info, ibv_pd* pd, const ibv_qp_init_attr* attributes) {
  if (rdma_bind_addr(&id.c, info.ai_src_addr) != 0) {
    return errno;
  }
  if (attributes != nullptr) {
    id.qp_attributes = *attributes;
    id.qp_attributes->qp_type = static_cast<ibv_qp_type>(info.ai_qp_type);
  }
  // The program's, and not the library's of the device: show_device() leaves it.
  if (pd != nullptr) {
    id.c.pd = pd;
  }
  return 0;
}

int prepare_active(Id& id, const rdma_addrinfo& info, ibv_pd* pd, ibv_qp_init_attr* attributes) {
  if (rdma_resolve_addr(&id.c, info.ai_src_addr, info.ai_dst_addr, kStepMs) != 0 ||
      rdma_resolve_route(&id.c, kStepMs) != 0) {
    return errno;
  }
  if (attributes != nullptr) {
    attributes->qp_type = static_cast<ibv_qp_type>(info.ai_qp_type);
    if (rdma_create_qp(&id.c, pd, attributes) != 0) {
      return errno;
    }
  }
  if (info.ai_connect_len != 0) {
    const auto* data = static_cast<const std::byte*>(info.ai_connect);
    id.connect_data.assign(data, data + info.ai_connect_len);
  }
  return 0;
}

}  // namespace
}  // namespace ringbolt::rdmacm

using ringbolt::rdmacm::DestroyEndpoint;
using ringbolt::rdmacm::Id;
using ringbolt::rdmacm::result;

extern "C" {

int rdma_create_ep(rdma_cm_id** c, rdma_addrinfo* info, ibv_pd* pd, ibv_qp_init_attr* attributes) try {
  rdma_cm_id* created = nullptr;
  if (rdma_create_id(nullptr, &created, nullptr, static_cast<rdma_port_space>(info->ai_port_space)) != 0) {
    return -1;
  }
  // What follows may throw for want of memory.
  std::unique_ptr<rdma_cm_id, DestroyEndpoint> made(created);
  Id& id = Id::of(created);
  if (info->ai_qp_type != 0) {
    made->qp_type = static_cast<ibv_qp_type>(info->ai_qp_type);
  }
  const bool is_passive = (info->ai_flags & RAI_PASSIVE) != 0;
  const int error = is_passive ? ringbolt::rdmacm::prepare_passive(id, *info, pd, attributes)
                               : ringbolt::rdmacm::prepare_active(id, *info, pd, attributes);
  if (error != 0) {
    // Before errno is set, which this may change.
    made.reset();
    return result(error);
  }
  *c = made.release();
  return 0;
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

void rdma_destroy_ep(rdma_cm_id* c) {
  if (c->qp != nullptr) {
    rdma_destroy_qp(c);
  }
  if (c->srq != nullptr) {
    rdma_destroy_srq(c);
  }
  rdma_destroy_id(c);
}

// Blocks until there is a request.
int rdma_get_request(rdma_cm_id* c, rdma_cm_id** request) try {
  Id& listener = Id::of(c);
  if (!listener.is_sync) {
    return result(EINVAL);
  }
  if (c->event != nullptr) {
    rdma_ack_cm_event(std::exchange(c->event, nullptr));
  }
  rdma_cm_event* event = nullptr;
  if (rdma_get_cm_event(c->channel, &event) != 0) {
    return -1;
  }
  int error = event->status < 0 ? -event->status : event->status;
  if (error == 0 && event->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
    error = EINVAL;
  }
  if (error == 0 && listener.qp_attributes) {
    ibv_qp_init_attr attributes = *listener.qp_attributes;
    error = rdma_create_qp(event->id, c->pd, &attributes) == 0 ? 0 : errno;
  }
  if (error != 0) {
    // The program finds it there, and it is acknowledged by the next call.
    c->event = event;
    return result(error);
  }
  *request = event->id;
  (*request)->event = event;
  return 0;
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

}  // extern "C"
