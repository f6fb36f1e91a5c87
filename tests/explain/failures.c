/* Requests that fail, and messages that are lost: a mistake at each, or none if the first argument is "right". Both ends
 * are queue pairs of this process. Before each case its name goes to standard error, on standard output its name and the
 * lines of the posts that matter, of the one end and of the other. */
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define POST_SEND(wr) (end_a.line = __LINE__, ibv_post_send(end_a.qp, wr, &bad_send))
#define POST_RECV(wr) (end_b.line = __LINE__, ibv_post_recv(end_b.qp, wr, &bad_receive))
#define NEED(condition) \
  do { if (!(condition)) fprintf(stderr, "failures.c:%d: %s: errno %d\n", __LINE__, #condition, errno), exit(2); } while (0)

enum { kBytes = 8192, kKey = 0x77, kAll = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC };

struct end {
  struct ibv_cq* cq;
  struct ibv_qp* qp;
  struct ibv_mr* mr;
  char* buffer;
  int line;
};

static struct ibv_context* context;
static struct ibv_pd *pd, *other_pd;
static union ibv_gid own;
static struct end end_a, end_b;
static struct ibv_send_wr* bad_send;
static struct ibv_recv_wr* bad_receive;
static int wrong = 1, access_of_b = kAll, retries = 7, timeout_code = 8;

static void make(struct end* end, enum ibv_qp_type type) {
  end->line = 0;
  NEED(end->cq = ibv_create_cq(context, 64, NULL, NULL, 0));
  struct ibv_qp_init_attr_ex init = {.send_cq = end->cq, .recv_cq = end->cq, .qp_type = type, .cap = {8, 8, 2, 2, 64}, .pd = pd};
  init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  init.send_ops_flags = IBV_QP_EX_WITH_SEND;
  NEED(end->qp = ibv_create_qp_ex(context, &init));
  NEED(end->buffer = aligned_alloc(4096, kBytes));
  memset(end->buffer, 1, kBytes);
  NEED(end->mr = ibv_reg_mr(pd, end->buffer, kBytes, kAll));
}

static void connect_to(struct ibv_qp* qp, uint32_t peer, int access) {
  const int is_rc = qp->qp_type == IBV_QPT_RC, is_ud = qp->qp_type == IBV_QPT_UD;
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = kKey, .qp_access_flags = access};
  NEED(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | (is_ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)));
  attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = peer, .max_dest_rd_atomic = 1, .min_rnr_timer = 1};
  attr.ah_attr.port_num = attr.ah_attr.is_global = attr.ah_attr.grh.sgid_index = 1;
  attr.ah_attr.grh.dgid = own;
  attr.ah_attr.grh.hop_limit = 64;
  NEED(!ibv_modify_qp(qp, &attr, is_ud ? IBV_QP_STATE : IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                      (is_rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0)));
  attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = timeout_code, .retry_cnt = 1, .rnr_retry = retries, .max_rd_atomic = 1};
  NEED(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN |
                      (is_rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0)));
}

static void make_pair(enum ibv_qp_type type) {
  make(&end_a, type), make(&end_b, type);
  connect_to(end_a.qp, end_b.qp->qp_num, kAll), connect_to(end_b.qp, end_a.qp->qp_num, access_of_b);
}

static void drop_pair(void) {
  if (end_a.qp) NEED(!ibv_destroy_qp(end_a.qp));
  if (end_b.qp) NEED(!ibv_destroy_qp(end_b.qp));
  if (end_a.mr) NEED(!ibv_dereg_mr(end_a.mr));
  if (end_b.mr) NEED(!ibv_dereg_mr(end_b.mr));
  NEED(!ibv_destroy_cq(end_a.cq) && !ibv_destroy_cq(end_b.cq));
  free(end_a.buffer), free(end_b.buffer);
}

/* Until a completion of `end` has come, or a second has passed; its status, or -1. The other end gets on meanwhile. */
static int await(struct end* end, struct ibv_wc* wc) {
  struct end* other = end == &end_a ? &end_b : &end_a;
  const time_t give_up = time(NULL) + 5;
  struct ibv_wc ignored;
  while (time(NULL) < give_up) {
    if (ibv_poll_cq(end->cq, 1, wc) > 0) return wc->status;
    if (wrong && other->cq) ibv_poll_cq(other->cq, 1, &ignored);
  }
  return -1;
}

static void pause_ms(long ms) { nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL); }

/* What is sent: `length` bytes at `at` of A's buffer, by `lkey`. */
static struct ibv_sge sge;
static struct ibv_send_wr request(enum ibv_wr_opcode opcode, size_t at, uint32_t length) {
  sge = (struct ibv_sge){(uintptr_t)end_a.buffer + at, length, end_a.mr->lkey};
  struct ibv_send_wr wr = {.wr_id = 7, .sg_list = &sge, .num_sge = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED};
  if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
    wr.wr.atomic.remote_addr = (uintptr_t)end_b.buffer, wr.wr.atomic.rkey = end_b.mr->rkey;
  } else {
    wr.wr.rdma.remote_addr = (uintptr_t)end_b.buffer, wr.wr.rdma.rkey = end_b.mr->rkey;
  }
  return wr;
}
static struct ibv_sge into;
static struct ibv_recv_wr receive(uint32_t length) {
  into = (struct ibv_sge){(uintptr_t)end_b.buffer, length, end_b.mr->lkey};
  return (struct ibv_recv_wr){.wr_id = 9, .sg_list = &into, .num_sge = 1};
}

static void begin(const char* name) { fflush(stdout), fprintf(stderr, "== %s\n", name); }
/* Both ends hear of it before the next case. */
static void finish(const char* name) {
  struct ibv_wc wc;
  for (int i = 0; wrong && i < 20; i++, pause_ms(1)) ibv_poll_cq(end_a.cq, 1, &wc), ibv_poll_cq(end_b.cq, 1, &wc);
  printf("%s %d %d\n", name, end_a.line, end_b.line);
  drop_pair();
}
/* One request of A's ends as it should. */
static void expect(const char* name, enum ibv_wc_status status) {
  struct ibv_wc wc = {0};
  const int got = await(&end_a, &wc);
  if (got != (wrong ? (int)status : 0)) fprintf(stderr, "unexpected: %s ends in status %d, not %d\n", name, got, (int)status);
  finish(name);
}

/* WRITE, READ and atomics: what the peer's memory does not allow. */
static void one_sided(const char* name) {
  const int is = wrong;
  begin(name);
  access_of_b = is && !strcmp(name, "qp-access-flags") ? IBV_ACCESS_LOCAL_WRITE : kAll;
  make_pair(IBV_QPT_RC);
  access_of_b = kAll;
  struct ibv_send_wr wr = request(IBV_WR_RDMA_WRITE, 0, 64);
  enum ibv_wc_status status = IBV_WC_REM_ACCESS_ERR;
  if (!is) {
  } else if (!strcmp(name, "rkey-deregistered")) {
    NEED(!ibv_dereg_mr(end_b.mr));
    end_b.line = __LINE__ - 1, end_b.mr = NULL;
  } else if (!strcmp(name, "rkey-bounds")) {
    wr.wr.rdma.remote_addr += kBytes - 10;
  } else if (!strcmp(name, "rkey-read-only") || !strcmp(name, "rkey-other-domain")) {
    NEED(!ibv_dereg_mr(end_b.mr));
    const int is_domain = !strcmp(name, "rkey-other-domain");
    NEED(end_b.mr = ibv_reg_mr(is_domain ? other_pd : pd, end_b.buffer, kBytes, is_domain ? kAll : IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ));
    wr.wr.rdma.rkey = end_b.mr->rkey;
  } else if (!strcmp(name, "rkey-offset")) {
    wr.wr.rdma.remote_addr = 0;
  } else if (!strcmp(name, "rkey-swapped")) {
    wr.wr.rdma.rkey = htonl(wr.wr.rdma.rkey);
  } else if (!strcmp(name, "rkey-unknown") || !strcmp(name, "flushed")) {
    wr.wr.rdma.rkey ^= 0x3f000000;
  }
  if (!strcmp(name, "atomic-address")) {
    wr = request(IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8);
    wr.wr.atomic.remote_addr += is ? 4 : 0;
    status = IBV_WC_REM_INV_REQ_ERR;
  } else if (!strcmp(name, "read-bounds")) {
    wr = request(IBV_WR_RDMA_READ, 0, 64);
    wr.wr.rdma.remote_addr += is ? kBytes : 0;
  } else if (!strcmp(name, "qp-access-flags") && !getenv("RINGBOLT_NETDEVS")) {
    status = IBV_WC_REM_INV_REQ_ERR;
  }
  for (int i = strcmp(name, "flushed") ? 1 : 0; i < 2; i++) NEED(!POST_SEND(&wr));
  expect(name, status);
}

/* SENDs that meet the wrong receive, or none. */
static void two_sided(const char* name) {
  const int is = wrong;
  begin(name);
  retries = !strcmp(name, "no-receive") ? 1 : 7;
  make_pair(IBV_QPT_RC);
  struct ibv_recv_wr room = receive(4096);
  struct ibv_send_wr wr = request(IBV_WR_SEND, 0, 100);
  enum ibv_wc_status status = IBV_WC_REM_INV_REQ_ERR;
  if (!is) {
  } else if (!strcmp(name, "receive-too-short")) {
    wr = request(IBV_WR_SEND, 0, kBytes);
  } else if (!strcmp(name, "receive-key")) {
    into.lkey ^= 0x3f000000;
    status = IBV_WC_REM_OP_ERR;
  } else if (!strcmp(name, "send-key")) {
    sge.lkey = end_b.mr->lkey ^ 0x3f000000;
    status = IBV_WC_LOC_PROT_ERR;
  } else if (!strcmp(name, "send-bounds")) {
    sge.addr += kBytes - 50;
    status = IBV_WC_LOC_PROT_ERR;
  } else if (!strcmp(name, "send-deregistered")) {
    NEED(!ibv_dereg_mr(end_a.mr));
    end_a.mr = NULL;
    status = IBV_WC_LOC_PROT_ERR;
  } else if (!strcmp(name, "no-receive")) {
    status = IBV_WC_RNR_RETRY_EXC_ERR;
  } else if (!strcmp(name, "peer-destroyed")) {
    status = IBV_WC_RETRY_EXC_ERR;
  }
  if (!is || strcmp(name, "no-receive")) NEED(!POST_RECV(&room));
  if (is && !strcmp(name, "peer-destroyed")) {
    NEED(!ibv_destroy_qp(end_b.qp));
    end_b.line = __LINE__ - 1, end_b.qp = NULL;
  }
  NEED(!POST_SEND(&wr));
  expect(name, status);
  retries = 7;
}

/* What the own side does not allow: results, atomics of the wrong length, memory windows, keys to invalidate. */
static void local(const char* name) {
  const int is = wrong;
  begin(name);
  make_pair(IBV_QPT_RC);
  struct ibv_mr* other = NULL;
  struct ibv_mw* window = NULL;
  struct ibv_send_wr wr = request(IBV_WR_RDMA_READ, 0, 64);
  enum ibv_wc_status status = IBV_WC_LOC_PROT_ERR;
  if (!strcmp(name, "read-into-read-only")) {
    NEED(other = ibv_reg_mr(pd, end_a.buffer, kBytes, is ? 0 : IBV_ACCESS_LOCAL_WRITE));
    sge.lkey = other->lkey;
  } else if (!strcmp(name, "atomic-length")) {
    wr = request(IBV_WR_ATOMIC_FETCH_AND_ADD, 0, is ? 4 : 8);
    status = IBV_WC_LOC_LEN_ERR;
  } else {
    NEED(window = ibv_alloc_mw(pd, IBV_MW_TYPE_2));
    NEED(other = ibv_reg_mr(pd, end_a.buffer, kBytes, kAll | (is && !strcmp(name, "window-flags") ? 0 : IBV_ACCESS_MW_BIND)));
    wr = (struct ibv_send_wr){.wr_id = 7, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED};
    wr.bind_mw.mw = window, wr.bind_mw.rkey = window->rkey;
    wr.bind_mw.bind_info = (struct ibv_mw_bind_info){other, (uintptr_t)end_a.buffer, kBytes, IBV_ACCESS_REMOTE_READ};
    status = IBV_WC_MW_BIND_ERR;
    if (is && !strcmp(name, "window-bounds")) wr.bind_mw.bind_info.length = 2 * kBytes;
    if (is && !strcmp(name, "window-key")) wr.bind_mw.rkey ^= 0x3f000000;
    if (is && !strcmp(name, "invalidate")) {
      wr.opcode = IBV_WR_LOCAL_INV, wr.invalidate_rkey = window->rkey;
      status = IBV_WC_LOC_QP_OP_ERR;
    }
  }
  NEED(!POST_SEND(&wr));
  expect(name, status);
  if (window) NEED(!ibv_dealloc_mw(window));
  if (other) NEED(!ibv_dereg_mr(other));
}

/* Datagrams that are lost, and those that end their receiver. */
static void datagram(const char* name) {
  const int is = wrong;
  struct ibv_wc wc = {0};
  begin(name);
  make_pair(IBV_QPT_UD);
  struct ibv_ah_attr way = {.port_num = 1, .is_global = 1, .grh = {.dgid = own, .sgid_index = 1, .hop_limit = 64}};
  struct ibv_ah* ah = ibv_create_ah(pd, &way);
  NEED(ah);
  struct ibv_recv_wr room = receive(is && !strcmp(name, "ud-too-short") ? 100 : kBytes);
  struct ibv_send_wr wr = request(IBV_WR_SEND, 0, 100);
  wr.wr.ud.ah = ah, wr.wr.ud.remote_qpn = end_b.qp->qp_num, wr.wr.ud.remote_qkey = kKey;
  if (is && !strcmp(name, "ud-key")) wr.wr.ud.remote_qkey = 0x78;
  if (is && !strcmp(name, "ud-nobody")) wr.wr.ud.remote_qpn ^= 0x3000;
  if (is && !strcmp(name, "ud-too-long")) sge.length = kBytes;
  if (!is || strcmp(name, "ud-no-receive")) NEED(!POST_RECV(&room));
  NEED(!POST_SEND(&wr));
  const int wanted = is && !strcmp(name, "ud-too-long") ? IBV_WC_LOC_LEN_ERR : IBV_WC_SUCCESS;
  const int got = await(&end_a, &wc);
  if (got != wanted) fprintf(stderr, "unexpected: %s ends in status %d\n", name, got);
  if (!is) NEED(await(&end_b, &wc) == IBV_WC_SUCCESS);
  finish(name);
  NEED(!ibv_destroy_ah(ah));
}

/* UC completes what its peer does not take. */
static void unreliable(const char* name) {
  struct ibv_wc wc;
  begin(name);
  make_pair(IBV_QPT_UC);
  struct ibv_send_wr wr = request(IBV_WR_RDMA_WRITE, 0, 64);
  wr.wr.rdma.remote_addr += wrong ? kBytes : 0;
  NEED(!POST_SEND(&wr));
  NEED(await(&end_a, &wc) == IBV_WC_SUCCESS);
  finish(name);
}

/* A shared receive queue tells whose receive it was. */
static void shared(const char* name) {
  struct ibv_wc wc;
  begin(name);
  make_pair(IBV_QPT_RC);
  NEED(!ibv_destroy_qp(end_b.qp));
  struct ibv_srq_init_attr attr = {.attr = {.max_wr = 4, .max_sge = 1}};
  struct ibv_srq* srq = ibv_create_srq(pd, &attr);
  NEED(srq);
  struct ibv_qp_init_attr init = {.send_cq = end_b.cq, .recv_cq = end_b.cq, .srq = srq, .qp_type = IBV_QPT_RC, .cap = {8, 0, 2, 0, 0}};
  NEED(end_b.qp = ibv_create_qp(pd, &init));
  NEED(!ibv_destroy_qp(end_a.qp));
  init = (struct ibv_qp_init_attr){.send_cq = end_a.cq, .recv_cq = end_a.cq, .qp_type = IBV_QPT_RC, .cap = {8, 8, 2, 2, 64}};
  NEED(end_a.qp = ibv_create_qp(pd, &init));
  connect_to(end_a.qp, end_b.qp->qp_num, kAll), connect_to(end_b.qp, end_a.qp->qp_num, kAll);
  struct ibv_recv_wr room = receive(wrong ? 10 : 200);
  NEED(!(end_b.line = __LINE__, ibv_post_srq_recv(srq, &room, &bad_receive)));
  struct ibv_send_wr wr = request(IBV_WR_SEND, 0, 100);
  NEED(!POST_SEND(&wr));
  NEED(await(&end_a, &wc) == (wrong ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_SUCCESS));
  finish(name);
  NEED(!ibv_destroy_srq(srq));
}

/* Queue pairs that are used after their end. */
static void destroyed(const char* name) {
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
  struct ibv_qp_init_attr init;
  begin(name);
  if (wrong) {
    make_pair(IBV_QPT_RC);
    struct ibv_send_wr wr = request(IBV_WR_SEND, 0, 8);
    struct ibv_qp* gone = end_a.qp;
    NEED(!ibv_destroy_qp(gone));
    end_b.line = __LINE__ - 1;
    NEED(ibv_modify_qp(gone, &attr, IBV_QP_STATE) == EINVAL);
    end_a.line = __LINE__ - 1;
    NEED(ibv_post_send(gone, &wr, &bad_send) == EINVAL);
    NEED(ibv_query_qp(gone, &attr, IBV_QP_STATE, &init) == EINVAL);
    struct ibv_qp_ex* batch = ibv_qp_to_qp_ex(gone);
    ibv_wr_start(batch);
    ibv_wr_send(batch);
    ibv_wr_set_sge(batch, 0, 0, 0);
    NEED(ibv_wr_complete(batch) == EINVAL);
    end_a.qp = NULL;
    finish(name);
  } else {
    printf("%s 0 0\n", name);
  }
}

int main(int argc, char** argv) {
  int n = 0;
  struct ibv_device** list = ibv_get_device_list(&n);
  wrong = argc < 2 || strcmp(argv[1], "right") != 0;
  NEED(n > 0 && (context = ibv_open_device(list[0])));
  NEED((pd = ibv_alloc_pd(context)) && (other_pd = ibv_alloc_pd(context)) && !ibv_query_gid(context, 1, 1, &own));
  static const char* const kOneSided[] = {"rkey-deregistered", "rkey-bounds", "rkey-read-only", "rkey-other-domain", "rkey-offset",
    "rkey-swapped", "rkey-unknown", "flushed", "atomic-address", "read-bounds", "qp-access-flags"};
  static const char* const kTwoSided[] = {"receive-too-short", "receive-key", "send-key", "send-bounds", "send-deregistered",
    "no-receive", "peer-destroyed"};
  static const char* const kLocal[] = {"read-into-read-only", "atomic-length", "window-flags", "window-bounds", "window-key", "invalidate"};
  static const char* const kDatagrams[] = {"ud-key", "ud-no-receive", "ud-too-short", "ud-nobody", "ud-too-long"};
#define EACH(names, run) for (size_t i = 0; i < sizeof names / sizeof *names; i++) run(names[i])
  EACH(kOneSided, one_sided);
  EACH(kTwoSided, two_sided);
  EACH(kLocal, local);
  EACH(kDatagrams, datagram);
  unreliable("uc-bounds");
  shared("shared-receive");
  destroyed("destroyed");
  begin("end");
  NEED(!ibv_dealloc_pd(other_pd) && !ibv_dealloc_pd(pd) && !ibv_close_device(context));
  ibv_free_device_list(list);
  return 0;
}
