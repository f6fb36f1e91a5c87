/* Programs that are right as long as a device does nothing odd, two for each kind of oddity, and their corrected twins. Each
 * ends with 0, or says which line found it out. */
#include "corpus.h"

#define ENDS_WELL(condition) ((condition) ? (void)0 : stop(#condition, __LINE__))

static void post(struct ibv_qp* qp, struct ibv_send_wr* wr) {
  struct ibv_send_wr* bad;
  MUST(!ibv_post_send(qp, wr, &bad));
}

static struct ibv_sge piece(struct ibv_mr* mr, int offset, int length) {
  return (struct ibv_sge){(uintptr_t)mr->addr + (uintptr_t)offset, (uint32_t)length, mr->lkey};
}

static struct ibv_wc polled(struct ibv_cq* cq) {
  struct ibv_wc wc;
  const double give_up = now() + 20;
  while (ibv_poll_cq(cq, 1, &wc) == 0) MUST(now() < give_up);
  MUST(wc.status == IBV_WC_SUCCESS);
  return wc;
}

static int is_readable(int descriptor, int timeout_ms) {
  struct pollfd one = {descriptor, POLLIN, 0};
  return poll(&one, 1, timeout_ms) == 1;
}

static void take_event(void) {
  struct ibv_cq* cq;
  void* own;
  MUST(!ibv_get_cq_event(channel, &cq, &own));
  ibv_ack_cq_events(cq, 1);
}

/* The first message may wait for the queue pairs to find each other. */
static void warm_up(void) {
  struct ibv_sge sge = piece(out_mr, 0, 64);
  struct ibv_send_wr wr = a_send(&sge);
  receive_into(qps[1], piece(in_mr, 0, 64));
  post(qps[0], &wr);
  polled(send_cq);
  polled(receive_cq);
  if (qps[2] == NULL) return;
  receive_into(qps[3], piece(in_mr, 0, 64));
  post(qps[2], &wr);
  polled(send_cq);
  polled(receive_cq);
}

/* late */

static void polled_once(void) {
  struct ibv_sge sge = piece(out_mr, 0, 64);
  struct ibv_send_wr wr = a_send(&sge);
  receive_into(qps[1], piece(in_mr, 0, 64));
  post(qps[0], &wr);
  WAIT(send_cq); /* so it has arrived, and the receive can be polled */
  struct ibv_wc wc;
  if (is_fixed) polled(receive_cq);
  else ENDS_WELL(ibv_poll_cq(receive_cq, 1, &wc) == 1);
}

static void one_for_several(void) {
  struct ibv_sge sge = piece(out_mr, 0, 64);
  struct ibv_send_wr wr = a_send(&sge);
  struct ibv_wc wc[kMost];
  int messages = 0;
  warm_up();
  for (int i = 0; i < kMost; i++) receive_into(qps[1], piece(in_mr, 64 * i, 64));
  const double give_up = now() + (is_fixed ? 20 : 1);
  for (int i = 0; i < kMost || messages < kMost; i++) {
    if (i < kMost) post(qps[0], &wr);
    const int n = ibv_poll_cq(receive_cq, kMost, wc);
    messages += is_fixed ? n : n > 0; /* each post has one completion, so there is one each time */
    while (ibv_poll_cq(send_cq, kMost, wc) > 0) continue;
    ENDS_WELL(now() < give_up);
  }
}

/* events */

static void event_is_completion(void) {
  struct ibv_sge sge = piece(out_mr, 0, 64);
  struct ibv_send_wr wr = a_send(&sge);
  struct ibv_wc wc;
  for (int i = 0; i < kMost; i++) {
    MUST(!ibv_req_notify_cq(receive_cq, 0));
    const int posts = i % 2;
    if (posts) receive_into(qps[1], piece(in_mr, 0, 64));
    if (!is_readable(channel->fd, 0)) {
      if (posts) post(qps[0], &wr), polled(send_cq);
      if (posts) polled(receive_cq);
      if (!is_readable(channel->fd, posts ? 1000 : 0)) continue;
      take_event();
      continue;
    }
    take_event();
    const int n = ibv_poll_cq(receive_cq, 1, &wc);
    ENDS_WELL(n == 1 || is_fixed);
    if (posts) post(qps[0], &wr), polled(send_cq), polled(receive_cq);
  }
}

static void event_brings_message(void) {
  struct ibv_sge sge = piece(out_mr, 0, 64);
  struct ibv_send_wr wr = a_send(&sge);
  memset(in, 0, kBytes);
  for (int i = 0; i < 8; i++) {
    int is_here = 0, is_posted = 0;
    receive_into(qps[1], piece(in_mr, 0, 64));
    MUST(!ibv_req_notify_cq(receive_cq, 0));
    const double give_up = now() + 20;
    while (!is_here) {
      MUST(now() < give_up);
      if (is_readable(channel->fd, is_posted ? 100 : 0)) {
        struct ibv_wc wc;
        take_event();
        if (is_fixed) MUST(!ibv_req_notify_cq(receive_cq, 0));
        is_here = !is_fixed || ibv_poll_cq(receive_cq, 1, &wc) == 1;
      } else if (!is_posted) {
        out[0] = (unsigned char)(i + 1);
        post(qps[0], &wr);
        polled(send_cq);
        is_posted = 1;
      }
    }
    if (!is_fixed && is_posted) polled(receive_cq);
    ENDS_WELL(in[0] == i + 1);
  }
}

/* order */

static void last_byte(void) {
  struct ibv_sge sge = all_of(out_mr);
  struct ibv_send_wr wr = one_sided(&sge, IBV_WR_RDMA_WRITE), behind = a_send(NULL);
  warm_up();
  memset(far, 0, kBytes);
  out[kBytes / 2 - 1] = 1;
  behind.num_sge = 0;
  receive_into(qps[1], NOTHING);
  post(qps[0], &wr);
  post(qps[0], &behind);
  if (is_fixed) WAIT(receive_cq);
  while (((volatile unsigned char*)far)[kBytes / 2 - 1] == 0) continue;
  ENDS_WELL(memcmp(out, far, kBytes / 2) == 0);
  WAIT(send_cq);
  WAIT(send_cq);
}

static void last_byte_of_read(void) {
  struct ibv_sge sge = all_of(in_mr);
  struct ibv_send_wr wr = one_sided(&sge, IBV_WR_RDMA_READ);
  warm_up();
  memset(in, 0, kBytes);
  far[kBytes / 2 - 1] = 1;
  post(qps[0], &wr);
  if (is_fixed) WAIT(send_cq);
  while (((volatile unsigned char*)in)[kBytes / 2 - 1] == 0) continue;
  ENDS_WELL(memcmp(in, far, kBytes / 2) == 0);
}

/* pairs */

static void flag_on_another_pair(void) {
  struct ibv_sge sge = all_of(out_mr);
  struct ibv_send_wr wr = one_sided(&sge, IBV_WR_RDMA_WRITE), flag = a_send(NULL);
  warm_up();
  memset(far, 0, kBytes);
  flag.num_sge = 0;
  receive_into(qps[is_fixed ? 1 : 3], NOTHING);
  post(qps[0], &wr);
  post(qps[is_fixed ? 0 : 2], &flag);
  WAIT(receive_cq);
  ENDS_WELL(memcmp(out, far, kBytes / 2) == 0);
  WAIT(send_cq);
  WAIT(send_cq);
}

static void first_comes_first(void) {
  struct ibv_sge sge = piece(out_mr, 0, 64);
  struct ibv_send_wr wr = a_send(&sge);
  warm_up();
  receive_into(qps[1], piece(in_mr, 0, 64));
  receive_into(qps[3], piece(in_mr, 64, 64));
  post(qps[0], &wr);
  post(qps[2], &wr);
  const struct ibv_wc first = polled(receive_cq), second = polled(receive_cq);
  ENDS_WELL(is_fixed || (first.qp_num == qps[1]->qp_num && second.qp_num == qps[3]->qp_num));
  WAIT(send_cq);
  WAIT(send_cq);
}

/* buffers */

static void changed_after_post(void) {
  struct ibv_sge sge = all_of(out_mr);
  struct ibv_send_wr wr = a_send(&sge);
  warm_up();
  receive_into(qps[1], all_of(in_mr));
  post(qps[0], &wr);
  if (is_fixed) WAIT(send_cq);
  out[100] ^= 1;
  WAIT(receive_cq);
  out[100] ^= 1;
  ENDS_WELL(memcmp(out, in, kBytes / 2) == 0);
}

static void unsignaled_and_reused(void) {
  struct ibv_sge sge = piece(out_mr, 0, 64);
  struct ibv_send_wr wr = a_send(&sge);
  warm_up();
  wr.send_flags = is_fixed ? IBV_SEND_SIGNALED : 0;
  for (int i = 0; i < 4; i++) receive_into(qps[1], piece(in_mr, 64 * i, 64));
  for (int i = 0; i < 4; i++) {
    out[0] = (unsigned char)i;
    post(qps[0], &wr);
    if (is_fixed) WAIT(send_cq);
  }
  for (int i = 0; i < 4; i++) {
    WAIT(receive_cq);
    ENDS_WELL(in[64 * i] == i);
  }
}

/* fence */

static void sent_behind_read(void) {
  struct ibv_sge sge = all_of(out_mr);
  struct ibv_send_wr first = one_sided(&sge, IBV_WR_RDMA_READ), second = a_send(&sge);
  warm_up();
  memset(out, 0, kBytes);
  receive_into(qps[1], all_of(in_mr));
  first.next = &second;
  if (is_fixed) second.send_flags |= IBV_SEND_FENCE;
  post(qps[0], &first);
  WAIT(receive_cq);
  ENDS_WELL(memcmp(in, far, kBytes / 2) == 0);
  WAIT(send_cq);
  WAIT(send_cq);
}

static void written_behind_read(void) {
  struct ibv_sge sge = piece(out_mr, 0, 64);
  struct ibv_send_wr first = one_sided(&sge, IBV_WR_RDMA_READ), second = one_sided(&sge, IBV_WR_RDMA_WRITE);
  warm_up();
  memset(out, 0, 64);
  second.wr.rdma.remote_addr += kBytes / 2;
  if (is_fixed) second.send_flags |= IBV_SEND_FENCE;
  post(qps[0], &first);
  post(qps[0], &second);
  WAIT(send_cq);
  WAIT(send_cq);
  ENDS_WELL(memcmp(far, far + kBytes / 2, 64) == 0);
}

/* acks */

static void answered_is_sent(void) {
  struct ibv_sge sge = piece(out_mr, 0, 64);
  struct ibv_send_wr wr = a_send(&sge);
  struct ibv_wc wc;
  warm_up();
  receive_into(qps[1], piece(in_mr, 0, 64));
  receive_into(qps[0], piece(in_mr, 64, 64));
  post(qps[0], &wr);
  polled(receive_cq);
  wr.send_flags = 0;
  post(qps[1], &wr); /* the answer */
  polled(receive_cq);
  if (is_fixed) polled(send_cq);
  else ENDS_WELL(ibv_poll_cq(send_cq, 1, &wc) == 1);
}

static void sent_first_is_complete_first(void) {
  struct ibv_sge sge = piece(out_mr, 0, 64);
  struct ibv_send_wr wr = a_send(&sge);
  warm_up();
  receive_into(qps[1], piece(in_mr, 0, 64));
  receive_into(qps[3], piece(in_mr, 64, 64));
  post(qps[0], &wr);
  polled(receive_cq);
  post(qps[2], &wr);
  polled(receive_cq);
  const struct ibv_wc first = polled(send_cq), second = polled(send_cq);
  ENDS_WELL(is_fixed || (first.qp_num == qps[0]->qp_num && second.qp_num == qps[2]->qp_num));
}

/* rnr */

static void received_late(void) {
  struct ibv_sge sge = piece(out_mr, 0, 64);
  struct ibv_send_wr wr = a_send(&sge);
  warm_up();
  if (is_fixed) receive_into(qps[1], piece(in_mr, 0, 64));
  post(qps[0], &wr);
  if (!is_fixed) receive_into(qps[1], piece(in_mr, 0, 64));
  ENDS_WELL(wait_for(send_cq) == IBV_WC_SUCCESS);
  WAIT(receive_cq);
}

static void one_receive_too_few(void) {
  struct ibv_sge sge = piece(out_mr, 0, 64);
  struct ibv_send_wr wr = a_send(&sge), second = a_send(&sge);
  warm_up();
  receive_into(qps[1], piece(in_mr, 0, 64));
  if (is_fixed) receive_into(qps[1], piece(in_mr, 64, 64));
  wr.next = &second;
  post(qps[0], &wr);
  if (!is_fixed) receive_into(qps[1], piece(in_mr, 64, 64));
  ENDS_WELL(wait_for(send_cq) == IBV_WC_SUCCESS && wait_for(send_cq) == IBV_WC_SUCCESS);
  WAIT(receive_cq);
  WAIT(receive_cq);
}

/* async */

static void take_async_event(enum ibv_event_type expected) {
  struct ibv_async_event event;
  ENDS_WELL(is_readable(context->async_fd, is_fixed ? 5000 : 0));
  MUST(!ibv_get_async_event(context, &event) && event.event_type == expected);
  ibv_ack_async_event(&event);
}

static void limit_is_told_at_once(void) {
  struct ibv_sge sge = piece(out_mr, 0, 64), into = piece(in_mr, 0, 64);
  struct ibv_send_wr wr = a_send(&sge);
  struct ibv_recv_wr receive = {.wr_id = 9, .sg_list = &into, .num_sge = 1}, *bad;
  struct ibv_srq_attr limit = {.srq_limit = 2};
  for (int i = 0; i < 2; i++) MUST(!ibv_post_srq_recv(srq, &receive, &bad));
  MUST(!ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT));
  post(qps[0], &wr);
  WAIT(receive_cq);
  take_async_event(IBV_EVENT_SRQ_LIMIT_REACHED);
  WAIT(send_cq);
}

static void refusal_is_told_at_once(void) {
  struct ibv_sge sge = piece(out_mr, 0, 64);
  struct ibv_send_wr wr = one_sided(&sge, IBV_WR_RDMA_WRITE);
  wr.wr.rdma.rkey ^= 0xff;
  receive_into(qps[1], piece(in_mr, 0, 64));
  post(qps[0], &wr);
  MUST(wait_for(send_cq) == IBV_WC_REM_ACCESS_ERR);
  MUST(wait_for(receive_cq) == IBV_WC_WR_FLUSH_ERR);
  take_async_event(IBV_EVENT_QP_ACCESS_ERR);
}

static const struct mistake cases[] = {
    {"late.polled-once", polled_once, 0},
    {"late.one-for-several", one_for_several, 0},
    {"events.event-is-completion", event_is_completion, 0},
    {"events.event-brings-message", event_brings_message, 0},
    {"order.last-byte", last_byte, 0},
    {"order.last-byte-of-read", last_byte_of_read, 0},
    {"pairs.flag-on-another-pair", flag_on_another_pair, kTwoPairs},
    {"pairs.first-comes-first", first_comes_first, kTwoPairs},
    {"buffers.changed-after-post", changed_after_post, 0},
    {"buffers.unsignaled-and-reused", unsignaled_and_reused, 0},
    {"fence.sent-behind-read", sent_behind_read, 0},
    {"fence.written-behind-read", written_behind_read, 0},
    {"acks.answered-is-sent", answered_is_sent, 0},
    {"acks.sent-first-is-complete-first", sent_first_is_complete_first, kTwoPairs},
    {"rnr.received-late", received_late, kImpatient},
    {"rnr.one-receive-too-few", one_receive_too_few, kImpatient},
    {"async.limit-is-told-at-once", limit_is_told_at_once, kShared},
    {"async.refusal-is-told-at-once", refusal_is_told_at_once, 0},
};

int main(int argc, char** argv) { return make(cases, sizeof cases / sizeof cases[0], argc, argv); }
