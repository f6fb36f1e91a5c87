// The structures of <rdma/rdma_cma.h> as programs were compiled with them; some carry copies in other languages.

#include <rdma/rdma_cma.h>

#include <cstddef>

static_assert(sizeof(rdma_cm_id) == 416);
static_assert(offsetof(rdma_cm_id, verbs) == 0);
static_assert(offsetof(rdma_cm_id, channel) == 8);
static_assert(offsetof(rdma_cm_id, context) == 16);
static_assert(offsetof(rdma_cm_id, qp) == 24);
static_assert(offsetof(rdma_cm_id, route) == 32);
static_assert(sizeof(rdma_route) == 312);
static_assert(offsetof(rdma_cm_id, ps) == 344);
static_assert(offsetof(rdma_cm_id, port_num) == 348);
static_assert(offsetof(rdma_cm_id, event) == 352);
static_assert(offsetof(rdma_cm_id, send_cq_channel) == 360);
static_assert(offsetof(rdma_cm_id, send_cq) == 368);
static_assert(offsetof(rdma_cm_id, recv_cq_channel) == 376);
static_assert(offsetof(rdma_cm_id, recv_cq) == 384);
static_assert(offsetof(rdma_cm_id, srq) == 392);
static_assert(offsetof(rdma_cm_id, pd) == 400);
static_assert(offsetof(rdma_cm_id, qp_type) == 408);
static_assert(offsetof(rdma_addr, dst_addr) == 128);
static_assert(sizeof(rdma_cm_event) == 80);
static_assert(offsetof(rdma_cm_event, listen_id) == 8);
static_assert(offsetof(rdma_cm_event, event) == 16);
static_assert(offsetof(rdma_cm_event, status) == 20);
static_assert(offsetof(rdma_cm_event, param) == 24);
static_assert(sizeof(rdma_event_channel) == 4);
static_assert(sizeof(rdma_conn_param) == 24);
static_assert(sizeof(rdma_addrinfo) == 96);
static_assert(offsetof(rdma_addrinfo, ai_src_addr) == 24);
static_assert(offsetof(rdma_addrinfo, ai_dst_addr) == 32);
