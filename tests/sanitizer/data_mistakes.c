/* Mistakes with the memory of requests, which a card forgives mostly. */
#include "corpus.h"

/* buffers */

static void send_changed(void) {
  struct ibv_sge sge = all_of(out_mr);
  struct ibv_send_wr wr = a_send(&sge), *bad;
  receive_into(qps[1], all_of(in_mr));
  AT("posted"), MUST(!ibv_post_send(qps[0], &wr, &bad));
  if (is_fixed) WAIT(send_cq);
  out[100] ^= 1;
  if (!is_fixed) wait_for(send_cq);
  WAIT(receive_cq);
}

static void write_changed_ex(void) {
  struct ibv_qp_ex* qp = ibv_qp_to_qp_ex(qps[0]);
  ibv_wr_start(qp);
  qp->wr_id = 7, qp->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_rdma_write(qp, far_mr->rkey, (uintptr_t)far);
  if (is_fixed) ibv_wr_set_inline_data(qp, out, 64);
  else ibv_wr_set_sge(qp, out_mr->lkey, (uintptr_t)out, 64);
  AT("posted"), MUST(!ibv_wr_complete(qp));
  out[63] ^= 1;
  wait_for(send_cq);
}

static void datagram_changed(void) {
  struct ibv_ah_attr to = {.is_global = 1, .port_num = 1, .grh = {.dgid = own, .sgid_index = 1, .hop_limit = 1}};
  struct ibv_ah* ah = ibv_create_ah(pd, &to);
  struct ibv_sge sge = {(uintptr_t)out, 64, out_mr->lkey};
  struct ibv_send_wr wr = a_send(&sge), last = a_send(&sge), *bad;
  MUST(ah);
  wr.wr.ud.ah = last.wr.ud.ah = ah;
  wr.wr.ud.remote_qpn = last.wr.ud.remote_qpn = qps[1]->qp_num;
  wr.wr.ud.remote_qkey = last.wr.ud.remote_qkey = 7;
  wr.send_flags = 0; /* known to be complete when the one behind it is */
  receive_into(qps[1], (struct ibv_sge){(uintptr_t)in, 1024, in_mr->lkey});
  receive_into(qps[1], (struct ibv_sge){(uintptr_t)in + 1024, 1024, in_mr->lkey});
  AT("posted"), MUST(!ibv_post_send(qps[0], &wr, &bad));
  if (!is_fixed) out[0]++;
  MUST(!ibv_post_send(qps[0], &last, &bad));
  wait_for(send_cq);
  WAIT(receive_cq);
  WAIT(receive_cq);
  MUST(!ibv_destroy_ah(ah));
}

static void unmapped_in_use(void) {
  unsigned char* memory = pages();
  struct ibv_mr* mr = ibv_reg_mr(pd, memory, kBytes, IBV_ACCESS_LOCAL_WRITE);
  struct ibv_sge sge = all_of(mr);
  struct ibv_send_wr wr = a_send(&sge), *bad;
  receive_into(qps[1], all_of(in_mr));
  AT("posted"), MUST(!ibv_post_send(qps[0], &wr, &bad));
  if (is_fixed) WAIT(send_cq);
  munmap(memory, kBytes);
  if (!is_fixed) wait_for(send_cq);
  WAIT(receive_cq);
  MUST(!ibv_dereg_mr(mr));
}

static void receive_unmapped(void) {
  unsigned char* memory = pages();
  struct ibv_mr* mr = ibv_reg_mr(pd, memory, kBytes, IBV_ACCESS_LOCAL_WRITE);
  struct ibv_sge sge = all_of(out_mr), into = all_of(mr);
  struct ibv_send_wr wr = a_send(&sge), *bad;
  struct ibv_recv_wr receive = {.wr_id = 9, .sg_list = &into, .num_sge = 1}, *bad_receive;
  AT("posted"), MUST(!ibv_post_recv(qps[1], &receive, &bad_receive));
  MUST(!ibv_post_send(qps[0], &wr, &bad));
  if (is_fixed) WAIT(receive_cq);
  munmap(memory, kBytes);
  if (!is_fixed) wait_for(receive_cq);
  WAIT(send_cq);
  MUST(!ibv_dereg_mr(mr));
}

static void posted_unmapped(void) {
  unsigned char* memory = pages();
  struct ibv_mr* mr = ibv_reg_mr(pd, memory, kBytes, IBV_ACCESS_LOCAL_WRITE);
  struct ibv_sge sge = all_of(is_fixed ? out_mr : mr);
  struct ibv_send_wr wr = a_send(&sge), *bad;
  receive_into(qps[1], all_of(in_mr));
  munmap(memory, kBytes);
  AT("posted"), MUST(!ibv_post_send(qps[0], &wr, &bad));
  wait_for(send_cq);
  MUST(!ibv_dereg_mr(mr));
}

static void send_deregistered(void) {
  struct ibv_sge sge = all_of(out_mr);
  struct ibv_send_wr wr = a_send(&sge), *bad;
  receive_into(qps[1], all_of(in_mr));
  AT("posted"), MUST(!ibv_post_send(qps[0], &wr, &bad));
  if (is_fixed) WAIT(send_cq);
  AT("deregistered"), MUST(!ibv_dereg_mr(out_mr));
  if (!is_fixed) wait_for(send_cq);
  out_mr = NULL;
  WAIT(receive_cq);
}

static void receive_deregistered(void) {
  struct ibv_sge into = all_of(in_mr);
  struct ibv_recv_wr receive = {.wr_id = 9, .sg_list = &into, .num_sge = 1}, *bad;
  AT("posted"), MUST(!ibv_post_recv(qps[1], &receive, &bad));
  if (is_fixed) MUST(!ibv_destroy_qp(qps[1])), qps[1] = NULL;
  AT("deregistered"), MUST(!ibv_dereg_mr(in_mr));
  in_mr = NULL;
}

static void receive_twice(void) {
  struct ibv_sge into = all_of(in_mr);
  struct ibv_recv_wr receive = {.wr_id = 9, .sg_list = &into, .num_sge = 1}, *bad;
  AT("first posted"), MUST(!ibv_post_recv(qps[1], &receive, &bad));
  if (is_fixed) into.addr += kBytes / 2;
  AT("posted"), MUST(!ibv_post_recv(qps[1], &receive, &bad));
}

static void shared_receives_overlap(void) {
  struct ibv_sge into = all_of(in_mr);
  struct ibv_recv_wr receive = {.wr_id = 9, .sg_list = &into, .num_sge = 1}, *bad;
  AT("first posted"), MUST(!ibv_post_srq_recv(srq, &receive, &bad));
  into.addr += is_fixed ? kBytes / 2 : kBytes / 2 - 1;
  AT("posted"), MUST(!ibv_post_srq_recv(srq, &receive, &bad));
}

static void reads_overlap(void) {
  struct ibv_sge into = all_of(in_mr);
  struct ibv_send_wr wr = one_sided(&into, IBV_WR_RDMA_READ), *bad;
  AT("first posted"), MUST(!ibv_post_send(qps[0], &wr, &bad));
  if (is_fixed) into.addr += kBytes / 2;
  AT("posted"), MUST(!ibv_post_send(qps[0], &wr, &bad));
  WAIT(send_cq);
  WAIT(send_cq);
}

static void sent_while_received(void) {
  struct ibv_sge sge = all_of(in_mr);
  struct ibv_recv_wr receive = {.wr_id = 9, .sg_list = &sge, .num_sge = 1}, *bad_receive;
  struct ibv_send_wr wr = a_send(&sge), *bad;
  receive_into(qps[0], all_of(out_mr));
  AT("first posted"), MUST(!ibv_post_recv(qps[1], &receive, &bad_receive));
  if (is_fixed) sge.addr += kBytes / 2;
  AT("posted"), MUST(!ibv_post_send(qps[1], &wr, &bad));
  WAIT(send_cq);
  WAIT(receive_cq);
}

static void sent_behind_read(void) {
  struct ibv_sge sge = all_of(in_mr), into = all_of(out_mr);
  struct ibv_send_wr read = one_sided(&sge, IBV_WR_RDMA_READ), wr = a_send(&sge), *bad;
  receive_into(qps[1], into);
  if (is_fixed) wr.send_flags |= IBV_SEND_FENCE;
  AT("first posted"), MUST(!ibv_post_send(qps[0], &read, &bad));
  AT("posted"), MUST(!ibv_post_send(qps[0], &wr, &bad));
  WAIT(send_cq);
  WAIT(send_cq);
  WAIT(receive_cq);
  MUST(!is_fixed || memcmp(out, far, kBytes / 2) == 0);
}

/* Into memory that it may not write to a card puts nothing: it fails the request. */
static void read_unwritable(void) {
  struct ibv_mr* mr;
  AT("registered"), MUST((mr = ibv_reg_mr(pd, pages(), kBytes, is_fixed ? IBV_ACCESS_LOCAL_WRITE : 0)));
  struct ibv_sge into = all_of(mr);
  struct ibv_send_wr wr = one_sided(&into, IBV_WR_RDMA_READ), *bad;
  AT("posted"), MUST(!ibv_post_send(qps[0], &wr, &bad));
  MUST(wait_for(send_cq) == (is_fixed ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR));
  MUST(!is_fixed || memcmp(mr->addr, far, kBytes / 2) == 0);
  MUST(!ibv_dereg_mr(mr));
}

static void receive_unwritable(void) {
  struct ibv_mr* mr;
  AT("registered"), MUST((mr = ibv_reg_mr(pd, pages(), kBytes, is_fixed ? IBV_ACCESS_LOCAL_WRITE : IBV_ACCESS_REMOTE_READ)));
  struct ibv_sge sge = all_of(out_mr), into = all_of(mr);
  struct ibv_send_wr wr = a_send(&sge), *bad;
  struct ibv_recv_wr receive = {.wr_id = 9, .sg_list = &into, .num_sge = 1}, *bad_receive;
  AT("posted"), MUST(!ibv_post_recv(qps[1], &receive, &bad_receive));
  MUST(!ibv_post_send(qps[0], &wr, &bad));
  MUST(wait_for(receive_cq) == (is_fixed ? IBV_WC_SUCCESS : IBV_WC_LOC_PROT_ERR));
  MUST(wait_for(send_cq) == (is_fixed ? IBV_WC_SUCCESS : IBV_WC_REM_OP_ERR));
  MUST(!ibv_dereg_mr(mr));
}

/* The post copies inline data: a fence comes too late for them. */
static void inline_behind_read(void) {
  struct ibv_sge sge = all_of(in_mr), first = {(uintptr_t)in + 8, 64, in_mr->lkey};
  struct ibv_send_wr read = one_sided(&sge, IBV_WR_RDMA_READ), wr = a_send(&first), *bad;
  receive_into(qps[1], all_of(out_mr));
  wr.send_flags |= IBV_SEND_FENCE | IBV_SEND_INLINE;
  AT("first posted"), MUST(!ibv_post_send(qps[0], &read, &bad));
  if (is_fixed) WAIT(send_cq);
  AT("posted"), MUST(!ibv_post_send(qps[0], &wr, &bad));
  WAIT(send_cq);
  if (!is_fixed) WAIT(send_cq);
  WAIT(receive_cq);
  MUST(!is_fixed || memcmp(out, far + 8, 64) == 0);
}

/* early */

static void echoed_early(void) {
  struct ibv_sge sge = all_of(out_mr), into = all_of(in_mr), echo = {(uintptr_t)out + kBytes / 2, 64, out_mr->lkey};
  struct ibv_recv_wr receive = {.wr_id = 9, .sg_list = &into, .num_sge = 1}, *bad_receive;
  struct ibv_send_wr wr = a_send(&sge), back = a_send(&echo), *bad;
  receive_into(qps[0], (struct ibv_sge){(uintptr_t)far, 64, far_mr->lkey});
  AT("receive posted"), MUST(!ibv_post_recv(qps[1], &receive, &bad_receive));
  MUST(!ibv_post_send(qps[0], &wr, &bad));
  WAIT(send_cq); /* which says that the peer has it, not that it may be read */
  if (is_fixed) WAIT(receive_cq);
  memcpy(out + kBytes / 2, in + 3, 64);
  AT("sent"), MUST(!ibv_post_send(qps[1], &back, &bad));
  WAIT(send_cq);
  WAIT(receive_cq);
  if (!is_fixed) WAIT(receive_cq);
  MUST(!is_fixed || memcmp(far, out + 3, 64) == 0);
}

static void read_early(void) {
  struct ibv_sge into = all_of(in_mr), on = {(uintptr_t)out, 64, out_mr->lkey};
  struct ibv_send_wr read = one_sided(&into, IBV_WR_RDMA_READ), wr = one_sided(&on, IBV_WR_RDMA_WRITE), *bad;
  wr.wr.rdma.remote_addr += kBytes / 2;
  AT("receive posted"), MUST(!ibv_post_send(qps[0], &read, &bad));
  if (is_fixed) WAIT(send_cq);
  memcpy(out, in, 64);
  AT("sent"), MUST(!ibv_post_send(qps[0], &wr, &bad));
  WAIT(send_cq);
  if (!is_fixed) WAIT(send_cq);
  MUST(!is_fixed || memcmp(far, far + kBytes / 2, 64) == 0);
}

static void receive_changed(void) {
  struct ibv_sge sge = all_of(out_mr), into = all_of(in_mr);
  struct ibv_recv_wr receive = {.wr_id = 9, .sg_list = &into, .num_sge = 1}, *bad_receive;
  struct ibv_send_wr wr = a_send(&sge), *bad;
  if (is_fixed) memset(in, 0, 8);
  AT("posted"), MUST(!ibv_post_recv(qps[1], &receive, &bad_receive));
  if (!is_fixed) memset(in, 0, 8);
  MUST(!ibv_post_send(qps[0], &wr, &bad));
  WAIT(send_cq);
  wait_for(receive_cq);
  MUST(memcmp(in, out, kBytes / 2) == 0);
}

static void shared_receive_changed(void) {
  struct ibv_sge sge = {(uintptr_t)out, 10, out_mr->lkey}, into = all_of(in_mr);
  struct ibv_recv_wr receive = {.wr_id = 9, .sg_list = &into, .num_sge = 1}, *bad_receive;
  struct ibv_send_wr wr = a_send(&sge), *bad;
  struct ibv_poll_cq_attr none = {0};
  const double give_up = now() + 20;
  AT("posted"), MUST(!ibv_post_srq_recv(srq, &receive, &bad_receive));
  if (!is_fixed) in[2000] = 1; /* where nothing will come: the device may write there all the same */
  MUST(!ibv_post_send(qps[0], &wr, &bad));
  WAIT(send_cq);
  AT("completion polled"); while (ibv_start_poll(receive_cq_ex, &none)) MUST(now() < give_up);
  MUST(receive_cq_ex->wr_id == 9 && ibv_wc_read_byte_len(receive_cq_ex) == 10);
  ibv_end_poll(receive_cq_ex);
  MUST(memcmp(in, out, 10) == 0 && in[10] == (unsigned char)(10 * 7)); /* what was there before, behind it */
}

static const struct mistake kMistakes[] = {
    {"send-changed", send_changed, 0},
    {"send-changed-uc", send_changed, kUc},
    {"write-changed-ex", write_changed_ex, 0},
    {"datagram-changed", datagram_changed, kUd},
    {"unmapped-in-use", unmapped_in_use, 0},
    {"receive-unmapped", receive_unmapped, 0},
    {"posted-unmapped", posted_unmapped, 0},
    {"send-deregistered", send_deregistered, 0},
    {"receive-deregistered", receive_deregistered, 0},
    {"receive-twice", receive_twice, 0},
    {"shared-receives-overlap", shared_receives_overlap, kShared},
    {"reads-overlap", reads_overlap, 0},
    {"sent-while-received", sent_while_received, 0},
    {"sent-behind-read", sent_behind_read, 0},
    {"read-unwritable", read_unwritable, 0},
    {"receive-unwritable", receive_unwritable, 0},
    {"inline-behind-read", inline_behind_read, 0},
    {"echoed-early", echoed_early, 0},
    {"read-early", read_early, 0},
    {"receive-changed", receive_changed, 0},
    {"shared-receive-changed", shared_receive_changed, kShared},
};

int main(int argc, char** argv) { return make(kMistakes, sizeof kMistakes / sizeof *kMistakes, argc, argv); }
