// Programs were compiled with these offsets long ago, some of them by hand (NCCL, JACCL and Go and Rust bindings carry
// copies of the structures). A header that lays them out otherwise must fail to build here, not there.

#include <infiniband/verbs.h>
#include <pthread.h>

#include <cstddef>

#include "abi/verbs_context.h"

#define RINGBOLT_SIZE(type, bytes) static_assert(sizeof(type) == (bytes))
#define RINGBOLT_AT(type, member, offset) static_assert(offsetof(type, member) == (offset))

static_assert(sizeof(void*) == 8,
              "the layouts below are those of x86-64, and of ARM64, whose C library has longer locks");
// What lies behind a lock lies that much further on ARM64: there 48 bytes, on x86-64 40.
inline constexpr size_t kLonger = sizeof(pthread_mutex_t) - 40;
#if defined(__x86_64__)
static_assert(kLonger == 0);
#elif defined(__aarch64__)
static_assert(kLonger == 8);
#endif
static_assert(sizeof(pthread_cond_t) == 48);

RINGBOLT_SIZE(ibv_device, 664);
RINGBOLT_AT(ibv_device, node_type, 16);
RINGBOLT_AT(ibv_device, transport_type, 20);
RINGBOLT_AT(ibv_device, name, 24);
RINGBOLT_AT(ibv_device, dev_name, 88);
RINGBOLT_AT(ibv_device, dev_path, 152);
RINGBOLT_AT(ibv_device, ibdev_path, 408);

RINGBOLT_SIZE(ibv_context_ops, 256);
RINGBOLT_SIZE(ibv_context, 328 + kLonger);
RINGBOLT_AT(ibv_context, device, 0);
RINGBOLT_AT(ibv_context, ops, 8);
RINGBOLT_AT(ibv_context, ops._compat_query_device, 8);
RINGBOLT_AT(ibv_context, ops._compat_query_port, 16);
RINGBOLT_AT(ibv_context, ops.alloc_mw, 64);
RINGBOLT_AT(ibv_context, ops.bind_mw, 72);
RINGBOLT_AT(ibv_context, ops.dealloc_mw, 80);
RINGBOLT_AT(ibv_context, ops.poll_cq, 96);
RINGBOLT_AT(ibv_context, ops.req_notify_cq, 104);
RINGBOLT_AT(ibv_context, ops.post_srq_recv, 168);
RINGBOLT_AT(ibv_context, ops.post_send, 208);
RINGBOLT_AT(ibv_context, ops.post_recv, 216);
RINGBOLT_AT(ibv_context, cmd_fd, 264);
RINGBOLT_AT(ibv_context, async_fd, 268);
RINGBOLT_AT(ibv_context, num_comp_vectors, 272);
RINGBOLT_AT(ibv_context, mutex, 280);
RINGBOLT_AT(ibv_context, abi_compat, 320 + kLonger);

RINGBOLT_SIZE(ibv_qp, 160 + kLonger);
RINGBOLT_AT(ibv_qp, context, 0);
RINGBOLT_AT(ibv_qp, qp_context, 8);
RINGBOLT_AT(ibv_qp, pd, 16);
RINGBOLT_AT(ibv_qp, send_cq, 24);
RINGBOLT_AT(ibv_qp, recv_cq, 32);
RINGBOLT_AT(ibv_qp, srq, 40);
RINGBOLT_AT(ibv_qp, handle, 48);
RINGBOLT_AT(ibv_qp, qp_num, 52);
RINGBOLT_AT(ibv_qp, state, 56);
RINGBOLT_AT(ibv_qp, qp_type, 60);
RINGBOLT_AT(ibv_qp, mutex, 64);
RINGBOLT_AT(ibv_qp, cond, 104 + kLonger);
RINGBOLT_AT(ibv_qp, events_completed, 152 + kLonger);

static_assert(sizeof(ibv_qp_ex) == 352 + kLonger || sizeof(ibv_qp_ex) == 360 + kLonger);
RINGBOLT_AT(ibv_qp_ex, qp_base, 0);
RINGBOLT_AT(ibv_qp_ex, comp_mask, 160 + kLonger);
RINGBOLT_AT(ibv_qp_ex, wr_id, 168 + kLonger);
RINGBOLT_AT(ibv_qp_ex, wr_flags, 176 + kLonger);
RINGBOLT_AT(ibv_qp_ex, wr_atomic_cmp_swp, 184 + kLonger);
RINGBOLT_AT(ibv_qp_ex, wr_start, 320 + kLonger);
RINGBOLT_AT(ibv_qp_ex, wr_complete, 328 + kLonger);
RINGBOLT_AT(ibv_qp_ex, wr_abort, 336 + kLonger);
RINGBOLT_AT(ibv_qp_ex, wr_atomic_write, 344 + kLonger);

RINGBOLT_SIZE(ibv_cq, 128 + kLonger);
RINGBOLT_AT(ibv_cq, context, 0);
RINGBOLT_AT(ibv_cq, channel, 8);
RINGBOLT_AT(ibv_cq, cq_context, 16);
RINGBOLT_AT(ibv_cq, cqe, 28);
RINGBOLT_AT(ibv_cq, mutex, 32);
RINGBOLT_AT(ibv_cq, cond, 72 + kLonger);
RINGBOLT_AT(ibv_cq, comp_events_completed, 120 + kLonger);
RINGBOLT_AT(ibv_cq, async_events_completed, 124 + kLonger);

RINGBOLT_SIZE(ibv_cq_ex, 288 + kLonger);
RINGBOLT_AT(ibv_cq_ex, comp_mask, 128 + kLonger);
RINGBOLT_AT(ibv_cq_ex, status, 132 + kLonger);
RINGBOLT_AT(ibv_cq_ex, wr_id, 136 + kLonger);
RINGBOLT_AT(ibv_cq_ex, start_poll, 144 + kLonger);
RINGBOLT_AT(ibv_cq_ex, next_poll, 152 + kLonger);
RINGBOLT_AT(ibv_cq_ex, end_poll, 160 + kLonger);

RINGBOLT_SIZE(ibv_mr, 48);
RINGBOLT_AT(ibv_mr, addr, 16);
RINGBOLT_AT(ibv_mr, length, 24);
RINGBOLT_AT(ibv_mr, handle, 32);
RINGBOLT_AT(ibv_mr, lkey, 36);
RINGBOLT_AT(ibv_mr, rkey, 40);

RINGBOLT_SIZE(ibv_wc, 48);
RINGBOLT_AT(ibv_wc, wr_id, 0);
RINGBOLT_AT(ibv_wc, status, 8);
RINGBOLT_AT(ibv_wc, opcode, 12);
RINGBOLT_AT(ibv_wc, vendor_err, 16);
RINGBOLT_AT(ibv_wc, byte_len, 20);
RINGBOLT_AT(ibv_wc, imm_data, 24);
RINGBOLT_AT(ibv_wc, qp_num, 28);
RINGBOLT_AT(ibv_wc, src_qp, 32);
RINGBOLT_AT(ibv_wc, wc_flags, 36);
RINGBOLT_AT(ibv_wc, pkey_index, 40);
RINGBOLT_AT(ibv_wc, slid, 42);
RINGBOLT_AT(ibv_wc, sl, 44);

RINGBOLT_SIZE(ibv_send_wr, 128);
RINGBOLT_AT(ibv_send_wr, next, 8);
RINGBOLT_AT(ibv_send_wr, sg_list, 16);
RINGBOLT_AT(ibv_send_wr, num_sge, 24);
RINGBOLT_AT(ibv_send_wr, opcode, 28);
RINGBOLT_AT(ibv_send_wr, send_flags, 32);
RINGBOLT_AT(ibv_send_wr, imm_data, 36);
RINGBOLT_AT(ibv_send_wr, wr, 40);
RINGBOLT_AT(ibv_send_wr, qp_type, 72);
RINGBOLT_AT(ibv_send_wr, bind_mw, 80);

RINGBOLT_SIZE(ibv_comp_channel, 16);
RINGBOLT_AT(ibv_comp_channel, context, 0);
RINGBOLT_AT(ibv_comp_channel, fd, 8);
RINGBOLT_AT(ibv_comp_channel, refcnt, 12);

RINGBOLT_SIZE(ibv_async_event, 16);
RINGBOLT_AT(ibv_async_event, element, 0);
RINGBOLT_AT(ibv_async_event, event_type, 8);

static_assert(sizeof(ibv_port_attr) == 52 || sizeof(ibv_port_attr) == 56);
RINGBOLT_AT(ibv_port_attr, state, 0);
RINGBOLT_AT(ibv_port_attr, max_mtu, 4);
RINGBOLT_AT(ibv_port_attr, gid_tbl_len, 12);
RINGBOLT_AT(ibv_port_attr, max_msg_sz, 20);
RINGBOLT_AT(ibv_port_attr, lid, 34);
RINGBOLT_AT(ibv_port_attr, link_layer, 46);
RINGBOLT_AT(ibv_port_attr, flags, 47);
RINGBOLT_AT(ibv_port_attr, port_cap_flags2, 48);

RINGBOLT_SIZE(ibv_gid_entry, 32);
RINGBOLT_AT(ibv_gid_entry, gid, 0);
RINGBOLT_AT(ibv_gid_entry, gid_index, 16);
RINGBOLT_AT(ibv_gid_entry, port_num, 20);
RINGBOLT_AT(ibv_gid_entry, gid_type, 24);
RINGBOLT_AT(ibv_gid_entry, ndev_ifindex, 28);

RINGBOLT_SIZE(ibv_pd, 16);
RINGBOLT_SIZE(ibv_ah, 24);
RINGBOLT_SIZE(ibv_srq, 128 + kLonger);
RINGBOLT_SIZE(ibv_recv_wr, 32);
RINGBOLT_SIZE(ibv_sge, 16);
RINGBOLT_SIZE(ibv_qp_attr, 144);
RINGBOLT_SIZE(ibv_qp_init_attr, 64);
RINGBOLT_SIZE(ibv_qp_init_attr_ex, 136);
RINGBOLT_SIZE(ibv_device_attr, 232);
RINGBOLT_SIZE(ibv_device_attr_ex, 400);
