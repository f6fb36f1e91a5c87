/* Verbs calls that the device refuses, one after the other. Prints a line for each: its name, the line of the call and 1 if
 * it was refused. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define REFUSED(name, condition) printf("%s %d %d\n", name, __LINE__, (condition) ? 1 : 0)

static struct ibv_context* context;
static struct ibv_pd* pd;
static struct ibv_cq* cq;
static union ibv_gid own;

static struct ibv_qp* make_qp(enum ibv_qp_type type) {
  struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = type, .cap = {4, 4, 1, 1, 64}};
  return ibv_create_qp(pd, &init);
}

static int to_init(struct ibv_qp* qp) {
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 7};
  return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                       (qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
}

static struct ibv_qp_attr path(struct ibv_qp* qp) {
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = qp->qp_num, .max_dest_rd_atomic = 1, .min_rnr_timer = 12};
  attr.ah_attr.port_num = 1;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.grh.dgid = own;
  attr.ah_attr.grh.sgid_index = 1;
  return attr;
}

enum { kRtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER };

int main(void) {
  int n = 0;
  struct ibv_device** list = ibv_get_device_list(&n);
  context = n > 0 ? ibv_open_device(list[0]) : NULL;
  pd = context ? ibv_alloc_pd(context) : NULL;
  cq = context ? ibv_create_cq(context, 16, NULL, NULL, 0) : NULL;
  if (!pd || !cq || ibv_query_gid(context, 1, 1, &own)) return 2;
  char* buffer = malloc(4096);
  struct ibv_mr* mr = ibv_reg_mr(pd, buffer, 4096, IBV_ACCESS_LOCAL_WRITE);
  struct ibv_sge sge = {(uintptr_t)buffer, 100, mr->lkey}, two[2] = {sge, sge};
  struct ibv_send_wr* bad_send;
  struct ibv_recv_wr* bad_receive;
  struct ibv_qp_attr attr;

  /* Steps and attributes. */
  struct ibv_qp* qp = make_qp(IBV_QPT_RC);
  attr = path(qp);
  REFUSED("skipped-init", ibv_modify_qp(qp, &attr, kRtr));
  if (to_init(qp)) return 2;
  REFUSED("missing-attribute", ibv_modify_qp(qp, &attr, kRtr & ~IBV_QP_MIN_RNR_TIMER));
  REFUSED("excess-attribute", ibv_modify_qp(qp, &attr, kRtr | IBV_QP_TIMEOUT));
  REFUSED("wrong-current-state", (attr.cur_qp_state = IBV_QPS_RTS, ibv_modify_qp(qp, &attr, kRtr | IBV_QP_CUR_STATE)));
  attr = path(qp), attr.ah_attr.grh.sgid_index = 5;
  REFUSED("empty-gid", ibv_modify_qp(qp, &attr, kRtr));
  attr = path(qp), attr.ah_attr.is_global = 0;
  REFUSED("no-grh", ibv_modify_qp(qp, &attr, kRtr));
  attr = path(qp), attr.ah_attr.grh.dgid.raw[15] ^= 0x55;
  REFUSED("unreachable", ibv_modify_qp(qp, &attr, kRtr));
  attr = path(qp), attr.path_mtu = (enum ibv_mtu)4096;
  REFUSED("mtu-in-bytes", ibv_modify_qp(qp, &attr, kRtr));
  attr = path(qp), attr.max_dest_rd_atomic = 200;
  REFUSED("read-atomic", ibv_modify_qp(qp, &attr, kRtr));

  /* Queues. */
  struct ibv_send_wr send = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
  REFUSED("send-before-rts", ibv_post_send(qp, &send, &bad_send));
  struct ibv_recv_wr receive = {.sg_list = two, .num_sge = 2};
  REFUSED("receive-pieces", ibv_post_recv(qp, &receive, &bad_receive));
  receive.num_sge = 1;
  for (n = 0; n < 4; n++) if (ibv_post_recv(qp, &receive, &bad_receive)) return 2;
  REFUSED("receive-queue-full", ibv_post_recv(qp, &receive, &bad_receive));
  struct ibv_qp* other = make_qp(IBV_QPT_RC);
  REFUSED("receive-in-reset", ibv_post_recv(other, &receive, &bad_receive));
  attr = path(qp);
  if (ibv_modify_qp(qp, &attr, kRtr)) return 2;
  attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};
  if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC)) return 2;
  send.num_sge = 2, send.sg_list = two;
  REFUSED("send-pieces", ibv_post_send(qp, &send, &bad_send));
  send.num_sge = 1, send.send_flags = IBV_SEND_INLINE;
  REFUSED("inline-too-long", ibv_post_send(qp, &send, &bad_send));
  send.send_flags = IBV_SEND_INLINE, send.opcode = IBV_WR_RDMA_READ;
  REFUSED("inline-read", ibv_post_send(qp, &send, &bad_send));
  send.send_flags = IBV_SEND_SIGNALED, send.opcode = IBV_WR_SEND;  /* which keep their places until they are polled */
  for (n = 0; n < 4; n++) if (ibv_post_send(qp, &send, &bad_send)) return 2;
  REFUSED("send-queue-full", ibv_post_send(qp, &send, &bad_send));
  struct ibv_qp* ud = make_qp(IBV_QPT_UD);
  if (to_init(ud)) return 2;
  attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR};
  if (ibv_modify_qp(ud, &attr, IBV_QP_STATE)) return 2;
  attr.qp_state = IBV_QPS_RTS;
  if (ibv_modify_qp(ud, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN)) return 2;
  send.opcode = IBV_WR_RDMA_WRITE;
  REFUSED("write-on-ud", ibv_post_send(ud, &send, &bad_send));
  send.opcode = IBV_WR_SEND;
  REFUSED("datagram-to-nobody", ibv_post_send(ud, &send, &bad_send));

  /* Objects. */
  REFUSED("remote-write-alone", !ibv_reg_mr(pd, buffer, 64, IBV_ACCESS_REMOTE_WRITE));
  REFUSED("not-mapped", !ibv_reg_mr(pd, (void*)4096, 4096, IBV_ACCESS_LOCAL_WRITE));
  void* constant = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REFUSED("read-only", !ibv_reg_mr(pd, constant, 4096, IBV_ACCESS_LOCAL_WRITE));
  REFUSED("on-demand", !ibv_reg_mr(pd, buffer, 64, IBV_ACCESS_ON_DEMAND));
  REFUSED("no-entries", !ibv_create_cq(context, 1 << 30, NULL, NULL, 0));
  struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = {1 << 20, 4, 1, 1, 0}};
  REFUSED("deep-queue", !ibv_create_qp(pd, &init));
  init = (struct ibv_qp_init_attr){.send_cq = cq, .qp_type = IBV_QPT_RC, .cap = {4, 4, 1, 1, 0}};
  REFUSED("no-receive-cq", !ibv_create_qp(pd, &init));
  struct ibv_srq_init_attr srq = {.attr = {.max_wr = 0, .max_sge = 1}};
  REFUSED("empty-srq", !ibv_create_srq(pd, &srq));
  struct ibv_ah_attr ah = path(qp).ah_attr;
  ah.grh.sgid_index = 6;
  REFUSED("ah-empty-gid", !ibv_create_ah(pd, &ah));
  union ibv_gid gid;
  REFUSED("gid-beyond-table", ibv_query_gid(context, 1, 99, &gid));
  struct ibv_port_attr port;
  REFUSED("port-zero", ibv_query_port(context, 0, &port));

  /* Extended verbs: what a builder refuses is told when its batch is completed. */
  struct ibv_cq_init_attr_ex cq_ex = {.cqe = 16, .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP};
  REFUSED("time-stamps", !ibv_create_cq_ex(context, &cq_ex));
  cq_ex = (struct ibv_cq_init_attr_ex){.cqe = 16, .comp_mask = 1u << 30};
  REFUSED("cq-mask", !ibv_create_cq_ex(context, &cq_ex));
  struct ibv_qp_init_attr_ex ex = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_UD, .cap = {4, 4, 1, 1, 64}, .pd = pd,
    .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, .send_ops_flags = IBV_QP_EX_WITH_RDMA_READ};
  REFUSED("ops-of-ud", !ibv_create_qp_ex(context, &ex));
  ex.comp_mask = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  REFUSED("no-domain", !ibv_create_qp_ex(context, &ex));
  ex.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS, ex.create_flags = 1;
  REFUSED("create-flags", !ibv_create_qp_ex(context, &ex));
  ex.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, ex.qp_type = IBV_QPT_RC;
  ex.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE;
  struct ibv_qp* extended = ibv_create_qp_ex(context, &ex);
  if (!extended) return 2;
  struct ibv_qp_ex* x = ibv_qp_to_qp_ex(extended);
  ibv_wr_start(x), ibv_wr_set_sge(x, mr->lkey, (uintptr_t)buffer, 8);
  REFUSED("nothing-begun", ibv_wr_complete(x));
  ibv_wr_start(x), ibv_wr_rdma_read(x, 1, 2);
  REFUSED("not-asked-for", ibv_wr_complete(x));
  struct ibv_sge pieces[2] = {sge, sge};
  ibv_wr_start(x), ibv_wr_send(x), ibv_wr_set_sge_list(x, 2, pieces);
  REFUSED("builder-pieces", ibv_wr_complete(x));
  ibv_wr_start(x), ibv_wr_send(x), ibv_wr_set_inline_data(x, buffer, 100);
  REFUSED("builder-inline", ibv_wr_complete(x));
  ibv_wr_start(x);
  for (n = 0; n < 5; n++) ibv_wr_send(x);
  REFUSED("builder-full", ibv_wr_complete(x));
  struct ibv_srq_init_attr_ex srq_ex = {.attr = {.max_wr = 4, .max_sge = 1}, .pd = pd, .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD, .srq_type = IBV_SRQT_XRC};
  REFUSED("xrc-srq", !ibv_create_srq_ex(context, &srq_ex));
  REFUSED("pd-in-use", ibv_dealloc_pd(pd));
  REFUSED("cq-in-use", ibv_destroy_cq(cq));
  return 0;
}
