#include <arpa/inet.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

#include "rsocket/fake_rdma_test_support.h"
#include "rsocket/work_id.h"

namespace ringbolt::rsocket::test {
namespace {

int answer_to(const char* call) {
  FakeRdma& fake = FakeRdma::get();
  fake.calls.emplace_back(call);
  if (fake.refused == call) {
    errno = fake.error;
    return -1;
  }
  return 0;
}

int note_param(const rdma_conn_param& param) {
  FakeRdma::get().last_param = param;
  FakeRdma::get().last_data.assign(static_cast<const char*>(param.private_data), param.private_data_len);
  return 0;
}

int poll_cq(ibv_cq*, int most, ibv_wc* out) {
  auto& waiting = FakeRdma::get().completions;
  int count = 0;
  for (; count < most && !waiting.empty(); ++count) {
    out[count] = waiting.front();
    waiting.pop_front();
  }
  return count;
}

int post_send(ibv_qp*, ibv_send_wr* request, ibv_send_wr**) {
  if (FakeRdma::get().refused == "post_send") {
    return FakeRdma::get().error;
  }
  Sent one;
  one.opcode = request->opcode;
  one.wr_id = request->wr_id;
  one.immediate = ntohl(request->imm_data);
  one.address = request->wr.rdma.remote_addr;
  one.key = request->wr.rdma.rkey;
  one.is_inline = (request->send_flags & IBV_SEND_INLINE) != 0;
  for (int i = 0; i < request->num_sge; ++i) {
    one.bytes.append(reinterpret_cast<const char*>(request->sg_list[i].addr), request->sg_list[i].length);
  }
  FakeRdma::get().sent.push_back(one);
  return 0;
}

int post_recv(ibv_qp*, ibv_recv_wr* request, ibv_recv_wr**) {
  for (; request != nullptr; request = request->next) {
    ++FakeRdma::get().receives;
  }
  return 0;
}

}  // namespace

FakeRdma& FakeRdma::get() {
  static FakeRdma only;
  return only;
}

void FakeRdma::complete(const Sent& one, ibv_wc_status status) {
  ibv_wc done{};
  done.wr_id = one.wr_id;
  done.status = status;
  completions.push_back(done);
}

void FakeRdma::bring(uint32_t word, uint32_t bytes) {
  ibv_wc done{};
  done.wr_id = WorkId{}.emit();
  done.wc_flags = IBV_WC_WITH_IMM;
  done.imm_data = htonl(word);
  done.byte_len = bytes;
  completions.push_back(done);
}

FakeId::FakeId() {
  FakeRdma::get() = {};
  device.ops.poll_cq = poll_cq;
  device.ops.post_send = post_send;
  device.ops.post_recv = post_recv;
  device.ops.req_notify_cq = [](ibv_cq*, int) { return 0; };
  id.verbs = &device;
  id.pd = &pd;
}

}  // namespace ringbolt::rsocket::test

using ringbolt::rsocket::test::answer_to;
using ringbolt::rsocket::test::FakeRdma;
using ringbolt::rsocket::test::note_param;

extern "C" {
rdma_event_channel* rdma_create_event_channel() {
  ++FakeRdma::get().channels;
  return answer_to("create_event_channel") == 0 ? new rdma_event_channel{::eventfd(0, EFD_CLOEXEC)} : nullptr;
}
void rdma_destroy_event_channel(rdma_event_channel* channel) {
  --FakeRdma::get().channels;
  ::close(channel->fd);
  delete channel;
}
int rdma_create_id(rdma_event_channel*, rdma_cm_id** id, void*, rdma_port_space) {
  if (answer_to("create_id") != 0) {
    return -1;
  }
  ++FakeRdma::get().ids;
  *id = new rdma_cm_id{};
  return 0;
}
int rdma_destroy_id(rdma_cm_id* id) {
  --FakeRdma::get().ids;
  delete id;
  return 0;
}
int rdma_migrate_id(rdma_cm_id*, rdma_event_channel*) { return answer_to("migrate_id"); }
int rdma_get_cm_event(rdma_event_channel*, rdma_cm_event** event) {
  auto& waiting = FakeRdma::get().events;
  if (waiting.empty()) {
    errno = EAGAIN;
    return -1;
  }
  *event = new rdma_cm_event(waiting.front());
  waiting.pop_front();
  return 0;
}
int rdma_ack_cm_event(rdma_cm_event* event) {
  delete event;
  return answer_to("ack_cm_event");
}
int rdma_bind_addr(rdma_cm_id*, sockaddr*) { return answer_to("bind_addr"); }
int rdma_listen(rdma_cm_id*, int) { return answer_to("listen"); }
int rdma_set_option(rdma_cm_id*, int level, int, void*, size_t) {
  return answer_to(level == RDMA_OPTION_IB ? "set_path" : "set_option");
}
int rdma_resolve_addr(rdma_cm_id*, sockaddr*, sockaddr*, int timeout_ms) {
  FakeRdma::get().timeouts_ms.push_back(timeout_ms);
  return answer_to("resolve_addr");
}
int rdma_resolve_route(rdma_cm_id*, int timeout_ms) {
  FakeRdma::get().timeouts_ms.push_back(timeout_ms);
  return answer_to("resolve_route");
}
int rdma_connect(rdma_cm_id*, rdma_conn_param* param) { return note_param(*param) + answer_to("connect"); }
int rdma_accept(rdma_cm_id*, rdma_conn_param* param) { return note_param(*param) + answer_to("accept"); }
int rdma_reject(rdma_cm_id*, const void*, uint8_t) { return answer_to("reject"); }
int rdma_disconnect(rdma_cm_id*) { return answer_to("disconnect"); }
int rdma_create_qp(rdma_cm_id* id, ibv_pd*, ibv_qp_init_attr* wanted) {
  if (wanted->cap.max_inline_data > FakeRdma::get().inline_bytes || answer_to("create_qp") != 0) {
    errno = EINVAL;
    return -1;
  }
  id->qp = new ibv_qp{};
  id->qp->context = id->verbs;
  return 0;
}
void rdma_destroy_qp(rdma_cm_id* id) {
  delete id->qp;
  id->qp = nullptr;
}

int ibv_query_device(ibv_context*, ibv_device_attr* limits) {
  limits->max_qp_wr = FakeRdma::get().max_qp_wr;
  limits->max_cqe = FakeRdma::get().max_cqe;
  return 0;
}
ibv_comp_channel* ibv_create_comp_channel(ibv_context* device) {
  return new ibv_comp_channel{device, ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), 0};
}
int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  ::close(channel->fd);
  delete channel;
  return 0;
}
ibv_cq* ibv_create_cq(ibv_context* device, int, void*, ibv_comp_channel*, int) {
  auto* cq = new ibv_cq{};
  cq->context = device;
  return cq;
}
int ibv_destroy_cq(ibv_cq* cq) {
  delete cq;
  return 0;
}
int ibv_get_cq_event(ibv_comp_channel*, ibv_cq**, void**) { return -1; }
void ibv_ack_cq_events(ibv_cq*, unsigned) {}
// NOLINTNEXTLINE: a macro of the header has its name
ibv_mr*(ibv_reg_mr)(ibv_pd* pd, void* address, size_t bytes, int access) {
  FakeRdma& fake = FakeRdma::get();
  fake.access = access;
  if (fake.refused == "reg_mr") {
    errno = fake.error;
    return nullptr;
  }
  auto* region = new ibv_mr{};
  region->pd = pd;
  region->addr = address;
  region->length = bytes;
  region->lkey = region->rkey = fake.next_key++;
  ++fake.regions;
  return region;
}
int ibv_dereg_mr(ibv_mr* region) {
  --FakeRdma::get().regions;
  delete region;
  return 0;
}
}
