#include "verbs_endpoint.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "shareable_memory.h"

namespace ringbolt::bench {
namespace {

constexpr uint8_t kPort = 1;
constexpr uint8_t kGidIndex = 1;

[[noreturn]] void fail(const char* call, int error) {
  throw std::runtime_error(fmt::format("verbs ({}): {}: {}", verbs_library_path(), call, std::strerror(error)));
}

void check(int error, const char* call) {
  if (error != 0) {
    fail(call, error);
  }
}

template <class T>
T* made(T* object, const char* call) {
  if (object == nullptr) {
    fail(call, errno);
  }
  return object;
}

ibv_qp_attr at_init() {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = kPort;
  attributes.qp_access_flags =
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  return attributes;
}

ibv_qp_attr at_rtr(const ibv_gid& gid, uint32_t qp_number) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = IBV_MTU_4096;
  attributes.dest_qp_num = qp_number;
  attributes.max_dest_rd_atomic = 16;
  attributes.min_rnr_timer = 12;
  attributes.ah_attr.is_global = 1;
  attributes.ah_attr.port_num = kPort;
  attributes.ah_attr.grh.dgid = gid;
  attributes.ah_attr.grh.sgid_index = kGidIndex;
  attributes.ah_attr.grh.hop_limit = 1;
  return attributes;
}

ibv_qp_attr at_rts() {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = 18;
  attributes.retry_cnt = 7;
  attributes.rnr_retry = 7;
  attributes.max_rd_atomic = 16;
  return attributes;
}

void bring_up(ibv_qp* qp, const ibv_gid& gid, uint32_t qp_number) {
  ibv_qp_attr attributes = at_rtr(gid, qp_number);
  check(ibv_modify_qp(qp, &attributes,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
        "ibv_modify_qp to RTR");
  attributes = at_rts();
  check(ibv_modify_qp(qp, &attributes,
                      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                          IBV_QP_MAX_QP_RD_ATOMIC),
        "ibv_modify_qp to RTS");
}

}  // namespace

VerbsEndpoint::VerbsEndpoint(Memory memory) {
  open_first_device();
  pd_.reset(made(ibv_alloc_pd(context_.get()), "ibv_alloc_pd"));
  make_arena(memory);
  region_.reset(made(ibv_reg_mr(pd_.get(), arena_.base, Arena::kBytes,
                                IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                    IBV_ACCESS_REMOTE_ATOMIC),
                     "ibv_reg_mr"));
  send_cq_.reset(made(ibv_create_cq(context_.get(), 2 * kSendDepth, nullptr, nullptr, 0), "ibv_create_cq"));
  receive_cq_.reset(made(ibv_create_cq(context_.get(), 2 * kReceiveDepth, nullptr, nullptr, 0), "ibv_create_cq"));
  for (auto& queue_pair : queue_pairs_) {
    queue_pair = make_queue_pair();
  }
}

void VerbsEndpoint::connect(Control& control, unsigned rank, unsigned ranks) {
  if (ranks > peers_.size()) {
    throw std::runtime_error(fmt::format("{} ranks; at most {}", ranks, peers_.size()));
  }
  VerbsAddress self{};
  check(ibv_query_gid(context_.get(), kPort, kGidIndex, &self.gid), "ibv_query_gid");
  self.qp_numbers = {to_next()->qp_num, to_previous()->qp_num};
  self.rkey = region_->rkey;
  self.arena_base = reinterpret_cast<uint64_t>(arena_.base);
  const auto blobs = control.exchange(std::string(reinterpret_cast<const char*>(&self), sizeof self));
  for (unsigned i = 0; i < ranks; ++i) {
    std::memcpy(&peers_.at(i), blobs.at(i).data(), sizeof self);
  }
  const VerbsAddress& next = peers_.at((rank + 1) % ranks);
  const VerbsAddress& previous = peers_.at((rank + ranks - 1) % ranks);
  bring_up(to_next(), next.gid, next.qp_numbers[1]);
  bring_up(to_previous(), previous.gid, previous.qp_numbers[0]);
}

void VerbsEndpoint::open_first_device() {
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  if (list == nullptr || count == 0) {
    throw std::runtime_error(fmt::format(
        "{} shows no verbs device; put build/.../lib/ringbolt first in LD_LIBRARY_PATH", verbs_library_path()));
  }
  context_.reset(ibv_open_device(list[0]));
  const int error = errno;
  ibv_free_device_list(list);
  if (context_ == nullptr) {
    fail("ibv_open_device", error);
  }
}

void VerbsEndpoint::make_arena(Memory memory) {
  if (memory == Memory::kPrivate) {
    arena_ = make_private_arena();
    memory_source_ = "malloc";
    return;
  }
  buffer_ = shareable_memory(*pd_, Arena::kBytes);
  arena_.base = buffer_.get();
  std::memset(arena_.base, 1, Arena::kBytes);
  memory_source_ = "ibv_alloc_buf";
}

VerbsEndpoint::Owned<ibv_qp, ibv_destroy_qp> VerbsEndpoint::make_queue_pair() {
  ibv_qp_init_attr attributes{};
  attributes.send_cq = send_cq_.get();
  attributes.recv_cq = receive_cq_.get();
  attributes.cap.max_send_wr = kSendDepth;
  attributes.cap.max_recv_wr = kReceiveDepth;
  attributes.cap.max_send_sge = 1;
  attributes.cap.max_recv_sge = 1;
  attributes.cap.max_inline_data = kInlineBytes;
  attributes.qp_type = IBV_QPT_RC;
  Owned<ibv_qp, ibv_destroy_qp> queue_pair(made(ibv_create_qp(pd_.get(), &attributes), "ibv_create_qp"));
  inline_bytes_ = attributes.cap.max_inline_data;
  ibv_qp_attr to_init = at_init();
  check(ibv_modify_qp(queue_pair.get(), &to_init,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
        "ibv_modify_qp to INIT");
  return queue_pair;
}

}  // namespace ringbolt::bench
