#include "loop_device.h"

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <stdexcept>

namespace ringbolt::bench {
namespace {

constexpr uint8_t kPort = 1;
constexpr uint32_t kDepth = 128;
constexpr int kCqEntries = 4096;

void check(int error, const char* call) {
  if (error != 0) {
    throw std::runtime_error(fmt::format("{}: {}", call, std::strerror(error)));
  }
}

template <class T>
T* made(T* object, const char* call) {
  if (object == nullptr) {
    check(errno, call);
  }
  return object;
}

}  // namespace

LoopDevice::LoopDevice(uint8_t gid_index) : gid_index_(gid_index) {
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  if (list == nullptr || count == 0) {
    throw std::runtime_error("no verbs device; put build/.../lib/ringbolt first in LD_LIBRARY_PATH");
  }
  context_.reset(made(ibv_open_device(list[0]), "ibv_open_device"));
  ibv_free_device_list(list);
  pd_.reset(made(ibv_alloc_pd(context_.get()), "ibv_alloc_pd"));
  channel_.reset(made(ibv_create_comp_channel(context_.get()), "ibv_create_comp_channel"));
  cq_ = make_completion_queue();
  check(ibv_query_gid(context_.get(), kPort, gid_index_, &gid_), "ibv_query_gid");
}

CompletionQueue LoopDevice::make_completion_queue() const {
  return CompletionQueue(made(ibv_create_cq(context_.get(), kCqEntries, nullptr, channel_.get(), 0), "ibv_create_cq"));
}

QueuePair LoopDevice::make_queue_pair(ibv_cq& cq, bool signals_all, uint32_t inline_bytes) const {
  ibv_qp_init_attr init{};
  init.send_cq = &cq;
  init.recv_cq = &cq;
  init.cap.max_send_wr = kDepth;
  init.cap.max_recv_wr = kDepth;
  init.cap.max_send_sge = 1;
  init.cap.max_recv_sge = 1;
  init.cap.max_inline_data = inline_bytes;
  init.qp_type = IBV_QPT_RC;
  init.sq_sig_all = signals_all ? 1 : 0;
  QueuePair queue_pair(made(ibv_create_qp(pd_.get(), &init), "ibv_create_qp"));
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = kPort;
  attributes.qp_access_flags =
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  check(ibv_modify_qp(queue_pair.get(), &attributes,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
        "ibv_modify_qp to INIT");
  return queue_pair;
}

void LoopDevice::connect(ibv_qp& one, ibv_qp& other) const {
  for (const auto& [self, peer] : {std::pair{&one, &other}, std::pair{&other, &one}}) {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_RTR;
    attributes.path_mtu = IBV_MTU_4096;
    attributes.dest_qp_num = peer->qp_num;
    attributes.max_dest_rd_atomic = 1;
    attributes.min_rnr_timer = 12;
    attributes.ah_attr.is_global = 1;
    attributes.ah_attr.port_num = kPort;
    attributes.ah_attr.grh.dgid = gid_;
    attributes.ah_attr.grh.sgid_index = gid_index_;
    check(ibv_modify_qp(self, &attributes,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                            IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
          "ibv_modify_qp to RTR");
  }
  for (ibv_qp* self : {&one, &other}) {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_RTS;
    attributes.timeout = 14;
    attributes.retry_cnt = 7;
    attributes.rnr_retry = 7;
    attributes.max_rd_atomic = 1;
    check(ibv_modify_qp(self, &attributes,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                            IBV_QP_MAX_QP_RD_ATOMIC),
          "ibv_modify_qp to RTS");
  }
}

void LoopDevice::exchange(ibv_qp& from, ibv_qp& to, int count) const {
  constexpr auto kPatience = std::chrono::seconds(10);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  for (int i = 0; i < count; ++i) {
    post_message(from, to);
    for (int completions = 0; completions < 2;) {
      ibv_wc completion{};
      const int polled = ibv_poll_cq(cq_.get(), 1, &completion);
      if (polled < 0 || (polled == 1 && completion.status != IBV_WC_SUCCESS)) {
        throw std::runtime_error(fmt::format("message {}: {}", i, ibv_wc_status_str(completion.status)));
      }
      completions += polled;
      if (std::chrono::steady_clock::now() > deadline) {
        throw std::runtime_error(fmt::format("message {}: no completion within 10 s", i));
      }
    }
  }
}

void LoopDevice::post_message(ibv_qp& from, ibv_qp& to) const {
  ibv_recv_wr receive{};
  ibv_recv_wr* bad_receive = nullptr;
  check(ibv_post_recv(&to, &receive, &bad_receive), "ibv_post_recv");
  ibv_send_wr send{};
  send.opcode = IBV_WR_SEND;
  ibv_send_wr* bad_send = nullptr;
  check(ibv_post_send(&from, &send, &bad_send), "ibv_post_send");
}

}  // namespace ringbolt::bench
