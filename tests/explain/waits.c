/* Programs that wait for what can't come: the first argument is which. Ends by itself after two seconds. */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NEED(condition) \
  do { if (!(condition)) fprintf(stderr, "waits.c:%d: %s\n", __LINE__, #condition), exit(2); } while (0)

static struct ibv_context* context;
static struct ibv_pd* pd;
static struct ibv_comp_channel* channel;
static union ibv_gid own;
static struct ibv_wc wc;

static struct ibv_qp* make(struct ibv_cq* cq) {
  struct ibv_qp_init_attr init = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = {4, 4, 1, 1, 64}};
  struct ibv_qp* qp = ibv_create_qp(pd, &init);
  NEED(qp);
  return qp;
}
static void connect_to(struct ibv_qp* qp, uint32_t peer) {
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
  NEED(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
  attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = peer, .max_dest_rd_atomic = 1, .min_rnr_timer = 12};
  attr.ah_attr.port_num = attr.ah_attr.is_global = attr.ah_attr.grh.sgid_index = 1;
  attr.ah_attr.grh.dgid = own, attr.ah_attr.grh.hop_limit = 64;
  NEED(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
  attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};
  NEED(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC));
}
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(int argc, char** argv) {
  int n = 0;
  const char* const name = argc > 1 ? argv[1] : "";
  struct ibv_device** list = ibv_get_device_list(&n);
  NEED(n > 0 && (context = ibv_open_device(list[0])) && (pd = ibv_alloc_pd(context)) && !ibv_query_gid(context, 1, 1, &own));
  NEED((channel = ibv_create_comp_channel(context)));
  struct ibv_cq *a_cq = ibv_create_cq(context, 16, NULL, channel, 0), *b_cq = ibv_create_cq(context, 16, NULL, NULL, 0);
  struct ibv_qp *a = make(a_cq), *b = make(b_cq);
  connect_to(a, b->qp_num), connect_to(b, a->qp_num);
  char* const buffer = calloc(1, 4096);
  struct ibv_mr* mr = ibv_reg_mr(pd, buffer, 4096, IBV_ACCESS_LOCAL_WRITE);
  NEED(mr);
  struct ibv_sge sge = {(uintptr_t)buffer, 100, mr->lkey};
  struct ibv_recv_wr receive = {.sg_list = &sge, .num_sge = 1}, *bad_receive;
  struct ibv_send_wr send = {.wr_id = 5, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad_send;
  const double give_up = now() + 2.2;
  int line = 0;
  if (!strcmp(name, "unsignaled")) {
    send.send_flags = 0;
    NEED(!ibv_post_recv(b, &receive, &bad_receive) && !ibv_post_send(a, &send, &bad_send));
    while (ibv_poll_cq(b_cq, 1, &wc) == 0) {
    }
  } else if (!strcmp(name, "no-receive")) {
    line = __LINE__ + 1;
    NEED(!ibv_post_send(a, &send, &bad_send));
  } else if (!strcmp(name, "server")) { /* which is right: it has a receive posted, and nobody sends */
    NEED(!ibv_post_recv(a, &receive, &bad_receive));
  } else if (!strcmp(name, "sleeps")) {
    NEED(!ibv_req_notify_cq(a_cq, 0));
    alarm(2);
    printf("%s %d\n", name, __LINE__ + 3), fflush(stdout);
    struct ibv_cq* cq;
    void* of;
    ibv_get_cq_event(channel, &cq, &of);
  }
  while (now() < give_up) {
    if (!line) line = __LINE__ + 1;
    if (ibv_poll_cq(a_cq, 1, &wc) != 0) break;
    if (!strcmp(name, "no-receive")) ibv_poll_cq(b_cq, 1, &wc);
  }
  printf("%s %d\n", name, line);
  return 0;
}
