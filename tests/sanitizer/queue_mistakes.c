/* Mistakes with queues, objects, other machines and order, which a card forgives mostly. */
#include "corpus.h"

/* queues */

static void too_many_receives(void) {
  struct ibv_recv_wr receive = {.wr_id = 9}, *bad;
  MUST(!ibv_post_recv(qps[1], &receive, &bad));
  MUST(!ibv_post_recv(qps[1], &receive, &bad));
  if (!is_fixed) AT("posted"), MUST(!ibv_post_recv(qps[1], &receive, &bad));
}

static void too_many_shared_receives(void) {
  struct ibv_recv_wr receive = {.wr_id = 9}, second = receive, third = receive, *bad;
  receive.next = &second;
  second.next = is_fixed ? NULL : &third;
  AT("posted"), MUST(!ibv_post_srq_recv(srq, &receive, &bad));
}

static void never_signaled(void) {
  struct ibv_send_wr wr = a_send(NULL), *bad;
  wr.num_sge = 0, wr.send_flags = 0;
  for (int i = 0; i < 5; i++) receive_into(qps[1], NOTHING);
  for (int i = 0; i < 4; i++) wr.send_flags = is_fixed && i == 1 ? IBV_SEND_SIGNALED : 0, MUST(!ibv_post_send(qps[0], &wr, &bad));
  for (int i = 0; i < 4; i++) WAIT(receive_cq); /* it has come: there is room, on some devices */
  if (is_fixed) WAIT(send_cq);
  AT("posted"), (void)ibv_post_send(qps[0], &wr, &bad);
}

static void never_signaled_ex(void) {
  struct ibv_qp_ex* qp = ibv_qp_to_qp_ex(qps[0]);
  for (int i = 0; i < 5; i++) receive_into(qps[1], NOTHING);
  ibv_wr_start(qp);
  for (int i = 0; i < 4; i++) qp->wr_flags = is_fixed && i == 1 ? IBV_SEND_SIGNALED : 0, ibv_wr_send(qp);
  MUST(!ibv_wr_complete(qp));
  if (is_fixed) WAIT(send_cq);
  ibv_wr_start(qp);
  qp->wr_flags = IBV_SEND_SIGNALED, ibv_wr_send(qp);
  AT("posted"), MUST(ibv_wr_complete(qp) >= 0); /* no tail call, which has no line */
}

// Until the peer has made its side of the connection, WRITEs wait in the send queue, which would refuse the last one.
static void write_once(void) {
  struct ibv_sge sge = all_of(out_mr);
  struct ibv_send_wr wr = one_sided(&sge, IBV_WR_RDMA_WRITE), *bad;
  wr.send_flags = IBV_SEND_SIGNALED;
  MUST(!ibv_post_send(qps[0], &wr, &bad));
  WAIT(send_cq);
}
/* Here the places of WRITEs are free at once, and the fifth finds room; on cards only a polled completion makes it. */
static void sends_unpolled(void) {
  struct ibv_sge sge = all_of(out_mr);
  struct ibv_send_wr wr = one_sided(&sge, IBV_WR_RDMA_WRITE), *bad;
  write_once();
  for (int i = 0; i < 4; i++) wr.send_flags = i == 3 ? IBV_SEND_SIGNALED : 0, MUST(!ibv_post_send(qps[0], &wr, &bad));
  if (is_fixed) WAIT(send_cq);
  AT("posted"), MUST(!ibv_post_send(qps[0], &wr, &bad));
  for (int i = is_fixed; i < 2; i++) WAIT(send_cq);
}

static void sends_unpolled_ex(void) {
  struct ibv_qp_ex* qp = ibv_qp_to_qp_ex(qps[0]);
  write_once();
  ibv_wr_start(qp);
  for (int i = 0; i < 4; i++) {
    qp->wr_flags = i == 3 ? IBV_SEND_SIGNALED : 0;
    ibv_wr_rdma_write(qp, far_mr->rkey, (uintptr_t)far), ibv_wr_set_sge(qp, out_mr->lkey, (uintptr_t)out, 64);
  }
  MUST(!ibv_wr_complete(qp));
  if (is_fixed) WAIT(send_cq);
  ibv_wr_start(qp);
  ibv_wr_rdma_write(qp, far_mr->rkey, (uintptr_t)far), ibv_wr_set_sge(qp, out_mr->lkey, (uintptr_t)out, 64);
  AT("posted"), MUST(!ibv_wr_complete(qp));
  for (int i = is_fixed; i < 2; i++) WAIT(send_cq);
}

static int is_asleep(void) { /* the first thread, in a system call */
  char path[64], text[256] = "";
  snprintf(path, sizeof path, "/proc/self/task/%d/syscall", getpid());
  const int fd = open(path, O_RDONLY);
  MUST(fd >= 0 && read(fd, text, sizeof text - 1) > 0);
  close(fd);
  const char* first = strchr(text, ' '); /* none: it runs */
  return first && atoi(text) == SYS_read && strtoul(first, NULL, 16) == (unsigned long)channel->fd;
}

static volatile int is_through; /* whoever needs no event any more */

static void* send_when_asleep(void* unused) {
  (void)unused;
  struct ibv_send_wr wr = a_send(NULL), *bad;
  wr.num_sge = 0;
  const double give_up = now() + 20;
  while (!is_asleep() && !__atomic_load_n(&is_through, __ATOMIC_ACQUIRE)) MUST(now() < give_up);
  MUST(!ibv_post_send(qps[0], &wr, &bad));
  return NULL;
}

static void armed_unpolled(void) {
  pthread_t sender;
  struct ibv_cq* taken;
  struct ibv_wc wc;
  void* unused;
  receive_into(qps[1], NOTHING);
  MUST(ibv_poll_cq(receive_cq, 1, &wc) == 0);
  MUST(!pthread_create(&sender, NULL, send_when_asleep, NULL));
  AT("armed"), MUST(!ibv_req_notify_cq(receive_cq, 0));
  if (is_fixed) MUST(ibv_poll_cq(receive_cq, 1, &wc) == 0);
  AT("sleeps"), MUST(!ibv_get_cq_event(channel, &taken, &unused));
  __atomic_store_n(&is_through, 1, __ATOMIC_RELEASE);
  ibv_ack_cq_events(taken, 1);
  WAIT(receive_cq);
  MUST(!pthread_join(sender, NULL));
  WAIT(send_cq);
}

static void armed_unpolled_shared(void) {
  struct ibv_recv_wr receive = {.wr_id = 9}, *bad;
  MUST(!ibv_post_srq_recv(srq, &receive, &bad));
  pthread_t sender;
  struct ibv_cq* taken;
  struct ibv_poll_cq_attr none = {0};
  void* unused;
  MUST(!pthread_create(&sender, NULL, send_when_asleep, NULL));
  AT("armed"), MUST(!ibv_req_notify_cq(receive_cq, 0));
  if (is_fixed) MUST(ibv_start_poll(receive_cq_ex, &none));
  AT("sleeps"), MUST(!ibv_get_cq_event(channel, &taken, &unused));
  ibv_ack_cq_events(taken, 1);
  WAIT(receive_cq);
  MUST(!pthread_join(sender, NULL));
  WAIT(send_cq);
}

static void unacknowledged(void) {
  struct ibv_send_wr wr = a_send(NULL), *bad;
  struct ibv_cq* taken;
  void* unused;
  wr.num_sge = 0;
  receive_into(qps[1], NOTHING);
  MUST(!ibv_req_notify_cq(receive_cq, 0));
  MUST(!ibv_post_send(qps[0], &wr, &bad));
  WAIT(send_cq);
  WAIT(receive_cq);
  MUST(!ibv_get_cq_event(channel, &taken, &unused));
  if (is_fixed) ibv_ack_cq_events(taken, 1);
  for (int i = 0; i < 2; i++) MUST(!ibv_destroy_qp(qps[i])), qps[i] = NULL;
  AT("destroyed"), MUST(!ibv_destroy_cq(receive_cq));
  receive_cq = NULL;
}

static void sends_after_failure(void) {
  struct ibv_sge sge = all_of(out_mr);
  struct ibv_send_wr wr = one_sided(&sge, IBV_WR_RDMA_WRITE), *bad;
  if (!is_fixed) wr.wr.rdma.rkey ^= 0x5500;
  MUST(!ibv_post_send(qps[0], &wr, &bad));
  wait_for(send_cq);
  AT("posted"), MUST(!ibv_post_send(qps[0], &wr, &bad));
  wait_for(send_cq);
}

static void receives_after_failure(void) {
  struct ibv_sge sge = all_of(out_mr);
  struct ibv_send_wr wr = a_send(&sge), *bad;
  struct ibv_recv_wr receive = {.wr_id = 9}, *bad_receive;
  receive_into(qps[1], is_fixed ? all_of(in_mr) : (struct ibv_sge){(uintptr_t)in, 10, in_mr->lkey});
  MUST(!ibv_post_send(qps[0], &wr, &bad));
  wait_for(receive_cq);
  AT("posted"), MUST(!ibv_post_recv(qps[1], &receive, &bad_receive));
  wait_for(send_cq);
}

/* objects */

static void queue_left(void) {
  AT("made"); struct ibv_cq* cq = ibv_create_cq(context, 4, NULL, NULL, 0);
  if (is_fixed) MUST(!ibv_destroy_cq(cq));
}

static void channel_left(void) {
  AT("made"); struct ibv_comp_channel* more = ibv_create_comp_channel(context);
  if (is_fixed) MUST(!ibv_destroy_comp_channel(more));
}

static void busy_domain(void) {
  AT("made"); struct ibv_pd* more = ibv_alloc_pd(context);
  struct ibv_mr* mr = ibv_reg_mr(more, malloc(64), 64, IBV_ACCESS_LOCAL_WRITE);
  if (is_fixed) MUST(!ibv_dereg_mr(mr));
  AT("destroyed in vain"), (void)ibv_dealloc_pd(more);
  if (!is_fixed) MUST(!ibv_dereg_mr(mr));
}

static void busy_queue(void) {
  AT("made"); struct ibv_cq* more = ibv_create_cq(context, 4, NULL, NULL, 0);
  struct ibv_qp_init_attr init = {.send_cq = more, .recv_cq = more, .cap = caps, .qp_type = IBV_QPT_RC};
  struct ibv_qp* qp = ibv_create_qp(pd, &init);
  if (is_fixed) MUST(!ibv_destroy_qp(qp));
  AT("destroyed in vain"), (void)ibv_destroy_cq(more);
  if (!is_fixed) MUST(!ibv_destroy_qp(qp));
}

/* portable */

static void deep_queue(void) {
  AT("made"); struct ibv_cq* cq = ibv_create_cq(context, is_fixed ? 4096 : 5000, NULL, NULL, 0);
  MUST(!ibv_destroy_cq(cq));
}

static void inline_data(void) {
  struct ibv_qp_init_attr init = {.send_cq = send_cq, .recv_cq = send_cq, .qp_type = IBV_QPT_UC};
  init.cap = (struct ibv_qp_cap){4, 4, 1, 1, is_fixed ? 0 : 64};
  AT("made"); struct ibv_qp* qp = ibv_create_qp(pd, &init);
  MUST(!ibv_destroy_qp(qp));
}

static void guessed_index(void) {
  type = IBV_QPT_UC, caps = (struct ibv_qp_cap){4, 4, 1, 1, 0};
  struct ibv_qp_init_attr init = {.send_cq = send_cq, .recv_cq = send_cq, .qp_type = type, .cap = caps};
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
  MUST((qps[0] = ibv_create_qp(pd, &init)));
  MUST(!ibv_modify_qp(qps[0], &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
  attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = qps[0]->qp_num};
  attr.ah_attr = (struct ibv_ah_attr){.is_global = 1, .port_num = 1, .grh = {.dgid = own, .sgid_index = 1}};
  const int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  AT("set"), MUST(!ibv_modify_qp(qps[0], &attr, mask));
}

static void guessed_index_of_handle(void) {
  struct ibv_ah_attr to = {.is_global = 1, .port_num = 1, .grh = {.dgid = own, .sgid_index = 1}};
  AT("set"); struct ibv_ah* ah = ibv_create_ah(pd, &to);
  MUST(ah && !ibv_destroy_ah(ah));
}

/* races */

static void writes_race(void) {
  struct ibv_sge sge = all_of(out_mr);
  struct ibv_send_wr wr = one_sided(&sge, IBV_WR_RDMA_WRITE), other = wr, *bad;
  other.wr.rdma.remote_addr += is_fixed ? kBytes / 2 : 100;
  AT("first posted"), MUST(!ibv_post_send(qps[0], &wr, &bad));
  AT("posted"), MUST(!ibv_post_send(qps[2], &other, &bad));
  WAIT(send_cq);
  WAIT(send_cq);
}

static void atomic_and_write_race(void) {
  struct ibv_sge sge = {(uintptr_t)out, 8, out_mr->lkey}, result = {(uintptr_t)in, 8, in_mr->lkey};
  struct ibv_send_wr wr = one_sided(&sge, IBV_WR_RDMA_WRITE), add = a_send(&result), *bad;
  add.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
  add.wr.atomic.remote_addr = (uintptr_t)far, add.wr.atomic.rkey = far_mr->rkey, add.wr.atomic.compare_add = 1;
  AT("first posted"), MUST(!ibv_post_send(qps[0], &add, &bad));
  if (is_fixed) WAIT(send_cq);
  AT("posted"), MUST(!ibv_post_send(qps[2], &wr, &bad));
  if (!is_fixed) WAIT(send_cq);
  WAIT(send_cq);
}

static void write_passes_read(void) {
  struct ibv_sge sge = all_of(out_mr), into = all_of(in_mr);
  struct ibv_send_wr read = one_sided(&into, IBV_WR_RDMA_READ), wr = one_sided(&sge, IBV_WR_RDMA_WRITE), *bad;
  if (is_fixed) wr.send_flags |= IBV_SEND_FENCE;
  AT("first posted"), MUST(!ibv_post_send(qps[0], &read, &bad));
  AT("posted"), MUST(!ibv_post_send(qps[0], &wr, &bad));
  WAIT(send_cq);
  WAIT(send_cq);
}

static void atomic_passes_read(void) {
  struct ibv_sge before = {(uintptr_t)in, 8, in_mr->lkey}, own = {(uintptr_t)out, 8, out_mr->lkey};
  struct ibv_send_wr read = one_sided(&before, IBV_WR_RDMA_READ), add = a_send(&own), *bad;
  add.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
  add.wr.atomic.remote_addr = (uintptr_t)far, add.wr.atomic.rkey = far_mr->rkey, add.wr.atomic.compare_add = 1;
  AT("first posted"), MUST(!ibv_post_send(qps[0], &read, &bad));
  if (is_fixed) WAIT(send_cq);
  AT("posted"), MUST(!ibv_post_send(qps[0], &add, &bad));
  WAIT(send_cq);
  if (!is_fixed) WAIT(send_cq);
}

struct hello {
  uint32_t qpn, rkey;
  uint64_t address;
};

/* Both processes write to the memory of the first one. */
static void processes_race(void) {
  make_queue_pair(2);
  struct hello mine = {qps[2]->qp_num, far_mr->rkey, (uintptr_t)far}, other;
  MUST(write(line, &mine, sizeof mine) == sizeof mine && read(line, &other, sizeof other) == sizeof other);
  connect_queue_pair(2, other.qpn);
  struct ibv_sge sge = all_of(out_mr);
  struct ibv_send_wr wr = one_sided(&sge, IBV_WR_RDMA_WRITE), *bad;
  char word = 0;
  if (is_child) {
    wr.wr.rdma.rkey = other.rkey, wr.wr.rdma.remote_addr = other.address + (is_fixed ? kBytes / 2 : 0);
    MUST(read(line, &word, 1) == 1);
    AT("posted"), MUST(!ibv_post_send(qps[2], &wr, &bad));
    WAIT(send_cq);
    MUST(write(line, &word, 1) == 1 && read(line, &word, 1) == 1);
  } else {
    AT("posted"), MUST(!ibv_post_send(qps[0], &wr, &bad));
    MUST(write(line, &word, 1) == 1 && read(line, &word, 1) == 1);
    wait_for(send_cq);
    MUST(write(line, &word, 1) == 1);
  }
}

static const struct mistake kMistakes[] = {
    {"too-many-receives", too_many_receives, kFewEntries},
    {"too-many-shared-receives", too_many_shared_receives, kFewEntries | kShared},
    {"never-signaled", never_signaled, kShallow},
    {"never-signaled-ex", never_signaled_ex, kShallow},
    {"sends-unpolled", sends_unpolled, kShallow},
    {"sends-unpolled-ex", sends_unpolled_ex, kShallow},
    {"armed-unpolled", armed_unpolled, 0},
    {"armed-unpolled-shared", armed_unpolled_shared, kShared},
    {"unacknowledged", unacknowledged, 0},
    {"sends-after-failure", sends_after_failure, 0},
    {"receives-after-failure", receives_after_failure, 0},
    {"queue-left", queue_left, 0},
    {"channel-left", channel_left, 0},
    {"busy-domain", busy_domain, 0},
    {"busy-queue", busy_queue, 0},
    {"deep-queue", deep_queue, kUnconnected},
    {"inline-data", inline_data, kUnconnected},
    {"guessed-index", guessed_index, kUnconnected | kGuesses},
    {"guessed-index-of-handle", guessed_index_of_handle, kUnconnected | kGuesses},
    {"writes-race", writes_race, kTwoPairs},
    {"atomic-and-write-race", atomic_and_write_race, kTwoPairs},
    {"processes-race", processes_race, kTwoProcesses},
    {"write-passes-read", write_passes_read, 0},
    {"atomic-passes-read", atomic_passes_read, 0},
};

int main(int argc, char** argv) { return make(kMistakes, sizeof kMistakes / sizeof *kMistakes, argc, argv); }
