/* What programs with one mistake each share. Usage: PROGRAM NAME|NAME-fixed. Prints a line for each call that a finding is
 * to name: what was done, and the line. All in one process: queue pair 0 is connected to 1, and 2 to 3. */
#ifndef RINGBOLT_TESTS_SANITIZER_CORPUS_H
#define RINGBOLT_TESTS_SANITIZER_CORPUS_H
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define AT(done) (printf("%s %d\n", done, __LINE__), fflush(stdout))
#define MUST(condition) ((condition) ? (void)0 : stop(#condition, __LINE__))

enum { kBytes = 4096, kMost = 16 };

static int is_fixed, wants_srq, guesses, is_child, line; /* line: to the other process */
static struct ibv_context* context;
static struct ibv_pd* pd;
static struct ibv_comp_channel* channel;
static struct ibv_cq *send_cq, *receive_cq;
static struct ibv_cq_ex* receive_cq_ex;
static struct ibv_srq* srq;
static struct ibv_qp* qps[4];
static struct ibv_mr *out_mr, *in_mr, *far_mr;
static unsigned char *out, *in, *far;
static union ibv_gid own;
static struct ibv_qp_cap caps = {kMost, kMost, 4, 4, 64};
static int receive_entries = kMost, rnr_retry = 7;
static enum ibv_qp_type type = IBV_QPT_RC;

static void stop(const char* what, int line) {
  printf("failed %d: %s\n", line, what);
  fflush(stdout);
  _exit(3);
}

static double now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

/* At a multiple of 16 KiB, which a Mac's regions begin at, and not at the end of what is mapped there: where it is unmapped
 * nothing but a page fits. */
static unsigned char* pages(void) {
  const uintptr_t step = 16384;
  void* found = mmap(NULL, 3 * step, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  MUST(found != MAP_FAILED);
  unsigned char* memory = (unsigned char*)(((uintptr_t)found + step) / step * step);
  for (int i = 0; i < kBytes; i++) memory[i] = (unsigned char)(i * 7 + i / 256);
  return memory;
}

static void make_queue_pair(int index) {
  struct ibv_qp_init_attr_ex wide = {.send_cq = send_cq, .recv_cq = receive_cq, .srq = index == 1 ? srq : NULL, .cap = caps,
                                     .qp_type = type, .pd = pd};
  struct ibv_qp_init_attr init = {.send_cq = send_cq, .recv_cq = receive_cq, .cap = caps, .qp_type = type};
  wide.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  wide.send_ops_flags = IBV_QP_EX_WITH_SEND;
  if (type == IBV_QPT_RC) wide.send_ops_flags |= IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ;
  qps[index] = index == 2 ? ibv_create_qp(pd, &init) : ibv_create_qp_ex(context, &wide);
  MUST(qps[index]);
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 7, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
  if (type == IBV_QPT_RC) attr.qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  MUST(!ibv_modify_qp(qps[index], &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                                             (type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)));
}

static void connect_queue_pair(int index, uint32_t peer) {
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_4096, .dest_qp_num = peer,
                             .max_dest_rd_atomic = 4, .min_rnr_timer = 12};
  attr.ah_attr = (struct ibv_ah_attr){.is_global = 1, .port_num = 1};
  attr.ah_attr.grh = (struct ibv_global_route){.dgid = own, .sgid_index = 1, .hop_limit = 1};
  int mask = IBV_QP_STATE;
  if (type != IBV_QPT_UD) mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  if (type == IBV_QPT_RC) mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  MUST(!ibv_modify_qp(qps[index], &attr, mask));
  attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = (uint8_t)rnr_retry, .max_rd_atomic = 4};
  mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
  if (type == IBV_QPT_RC) mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  MUST(!ibv_modify_qp(qps[index], &attr, mask));
}

static void set_up(int pairs) {
  int n = 0;
  struct ibv_device** list = ibv_get_device_list(&n);
  MUST(n > 0 && (context = ibv_open_device(list[0])));
  struct ibv_context* other = guesses ? ibv_open_device(list[0]) : context;
  MUST((pd = ibv_alloc_pd(context)) && other && !ibv_query_gid(other, 1, 1, &own));
  MUST(other == context || !ibv_close_device(other));
  ibv_free_device_list(list);
  MUST((channel = ibv_create_comp_channel(context)));
  MUST((send_cq = ibv_create_cq(context, 4 * kMost, NULL, NULL, 0)));
  struct ibv_cq_init_attr_ex wanted = {.cqe = (uint32_t)receive_entries, .wc_flags = IBV_WC_EX_WITH_BYTE_LEN};
  wanted.channel = pairs == 0 ? NULL : channel; /* without, there is nothing that a Mac does not have */
  AT("completion queue made"), MUST((receive_cq_ex = ibv_create_cq_ex(context, &wanted)));
  receive_cq = ibv_cq_ex_to_cq(receive_cq_ex);
  struct ibv_srq_init_attr shared = {.attr = {.max_wr = kMost, .max_sge = 4}};
  MUST(!wants_srq || (srq = ibv_create_srq(pd, &shared)));
  out = pages(), in = pages(), far = pages();
  MUST((out_mr = ibv_reg_mr(pd, out, kBytes, IBV_ACCESS_LOCAL_WRITE)));
  MUST((in_mr = ibv_reg_mr(pd, in, kBytes, IBV_ACCESS_LOCAL_WRITE)));
  int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
  if (pairs != 0) all |= IBV_ACCESS_REMOTE_ATOMIC;
  MUST((far_mr = ibv_reg_mr(pd, far, kBytes, all)));
  for (int i = 0; i < 2 * pairs; i++) make_queue_pair(i);
  for (int i = 0; i < 2 * pairs; i++) connect_queue_pair(i, qps[i ^ 1]->qp_num);
}

static void tear_down(void) {
  for (int i = 0; i < 4; i++) MUST(!qps[i] || !ibv_destroy_qp(qps[i]));
  MUST(!srq || !ibv_destroy_srq(srq));
  MUST(!in_mr || !ibv_dereg_mr(in_mr));
  MUST(!out_mr || !ibv_dereg_mr(out_mr));
  MUST(!far_mr || !ibv_dereg_mr(far_mr));
  MUST(!receive_cq || !ibv_destroy_cq(receive_cq));
  MUST(!send_cq || !ibv_destroy_cq(send_cq));
  MUST(!channel || !ibv_destroy_comp_channel(channel));
  MUST(!pd || !ibv_dealloc_pd(pd));
  MUST(!ibv_close_device(context));
}

/* Waits for one completion; its status. */
static int wait_for(struct ibv_cq* cq) {
  struct ibv_wc wc;
  const double give_up = now() + 20;
  AT("failed completion polled"); AT("completion polled"); while (ibv_poll_cq(cq, 1, &wc) == 0) MUST(now() < give_up);
  return wc.status;
}
#define WAIT(cq) MUST(wait_for(cq) == IBV_WC_SUCCESS)

static struct ibv_sge all_of(struct ibv_mr* mr) { return (struct ibv_sge){(uintptr_t)mr->addr, kBytes / 2, mr->lkey}; }

static struct ibv_send_wr a_send(struct ibv_sge* sge) {
  return (struct ibv_send_wr){.wr_id = 7, .sg_list = sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
}
static struct ibv_send_wr one_sided(struct ibv_sge* sge, enum ibv_wr_opcode opcode) {
  struct ibv_send_wr wr = a_send(sge);
  wr.opcode = opcode;
  wr.wr.rdma.remote_addr = (uintptr_t)far;
  wr.wr.rdma.rkey = far_mr->rkey;
  return wr;
}

static void receive_into(struct ibv_qp* qp, struct ibv_sge sge) {
  struct ibv_recv_wr wr = {.wr_id = 9, .sg_list = &sge, .num_sge = sge.length != 0}, *bad;
  MUST(!ibv_post_recv(qp, &wr, &bad));
}
#define NOTHING ((struct ibv_sge){0, 0, 0})

enum { kShared = 1, kUd = 2, kUc = 4, kTwoPairs = 8, kShallow = 16, kFewEntries = 32, kGuesses = 64 };
enum { kUnconnected = 128, kTwoProcesses = 256, kImpatient = 512 };
struct mistake {
  const char* name;
  void (*run)(void);
  int options;
};

/* The program: without an argument, the names. */
static int make(const struct mistake* cases, size_t count, int argc, char** argv) {
  char name[64];
  if (argc != 2 || strlen(argv[1]) >= sizeof name) {
    for (size_t i = 0; i < count; i++) puts(cases[i].name);
    return argc == 1 ? 0 : 2;
  }
  strcpy(name, argv[1]);
  char* const end = strstr(name, "-fixed");
  is_fixed = end != NULL;
  if (end) *end = 0;
  for (size_t i = 0; i < count; i++) {
    const int options = cases[i].options;
    if (strcmp(cases[i].name, name) != 0) continue;
    type = options & kUd ? IBV_QPT_UD : options & kUc ? IBV_QPT_UC : IBV_QPT_RC;
    if (options & kShallow) caps.max_send_wr = 4;
    if (options & kFewEntries) receive_entries = 2;
    if (options & kImpatient) rnr_retry = 0;
    wants_srq = options & kShared;
    int both[2];
    MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, both));
    const pid_t child = options & kTwoProcesses ? fork() : 1;
    is_child = child == 0, line = both[is_child];
    guesses = (options & kGuesses) && !is_fixed;
    set_up(options & kUnconnected ? 0 : options & kTwoPairs ? 2 : 1);
    cases[i].run();
    tear_down();
    int status = 0;
    MUST(!(options & kTwoProcesses) || is_child || waitpid(child, &status, 0) == child);
    return WEXITSTATUS(status) == 66 ? 0 : WEXITSTATUS(status);
  }
  return 2;
}

#endif
