#include "probe/endpoint.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "base/clock.h"
#include "probe/pattern.h"
#include "probe/probe_failure.h"

namespace ringbolt::tools {
namespace {

constexpr size_t kMostSlots = 64;
constexpr uint32_t kQueueDepth = kMostSlots + 8;
constexpr int kPort = 1;

/// What the two ends tell each other.
struct Identity {
  ibv_gid gid{};
  uint32_t qp_num = 0;
  uint32_t psn = 0;
};
static_assert(sizeof(Identity) == 24);

}  // namespace

SlotPlan SlotPlan::for_size(size_t size_bytes) {
  constexpr size_t kMostBytes = size_t{16} << 20U;
  const size_t slots = std::clamp<size_t>(kMostBytes / size_bytes, 2, kMostSlots);
  return {size_bytes, static_cast<uint32_t>(slots), static_cast<uint32_t>(slots - 1)};
}

Endpoint::Endpoint(const verbs::Library& library, const std::string& device, const SlotPlan& plan, Channel& channel)
    : library_(library),
      plan_(plan),
      channel_(channel),
      memory_(plan.size_bytes * (plan.send_slots + plan.receive_slots)),
      context_(open_device(library, device)) {
  for (uint32_t number = 0; number < plan_.send_slots; ++number) {
    fill_pattern(send_slot(number), number);
  }
  open();
  connect();
}

void Endpoint::open() {
  pd_ = own(library_, verbs_.alloc_pd(context_.get()), "ibv_alloc_pd");
  mr_ = own(library_, verbs_.reg_mr(pd_.get(), memory_.data(), memory_.size(), IBV_ACCESS_LOCAL_WRITE), "ibv_reg_mr");
  cq_ = own(library_, verbs_.create_cq(context_.get(), 2 * kQueueDepth, nullptr, nullptr, 0), "ibv_create_cq");
  ibv_qp_init_attr wanted{};
  wanted.send_cq = wanted.recv_cq = cq_.get();
  wanted.qp_type = IBV_QPT_RC;
  wanted.sq_sig_all = 1;
  wanted.cap.max_send_wr = wanted.cap.max_recv_wr = kQueueDepth;
  wanted.cap.max_send_sge = wanted.cap.max_recv_sge = 1;
  wanted.cap.max_inline_data = sizeof(uint64_t);
  qp_ = own(library_, verbs_.create_qp(pd_.get(), &wanted), "ibv_create_qp");
}

void Endpoint::connect() {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = kPort;
  if (const int error =
          verbs_.modify_qp(qp_.get(), &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)) {
    fail_call("ibv_modify_qp to INIT", error);
  }
  while (receives_posted_ < plan_.receive_slots) {
    post_receive();
  }
  Identity mine;
  mine.qp_num = qp_->qp_num;
  mine.psn = static_cast<uint32_t>(base::now_ns()) & 0xffffffU;
  const uint8_t gid_index = choose_gid(context_, kPort, mine.gid);
  Identity theirs;
  channel_.exchange(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(&theirs, 1)));

  attr = {};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = port_mtu();
  attr.dest_qp_num = theirs.qp_num;
  attr.rq_psn = theirs.psn;
  attr.max_dest_rd_atomic = 1;
  attr.min_rnr_timer = 12;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = kPort;
  attr.ah_attr.grh.dgid = theirs.gid;
  attr.ah_attr.grh.sgid_index = gid_index;
  attr.ah_attr.grh.hop_limit = 64;
  if (const int error = verbs_.modify_qp(qp_.get(), &attr,
                                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)) {
    fail_call("ibv_modify_qp to RTR", error);
  }
  attr = {};
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = 14;
  attr.retry_cnt = 7;
  attr.rnr_retry = 7;
  attr.sq_psn = mine.psn;
  attr.max_rd_atomic = 1;
  if (const int error = verbs_.modify_qp(qp_.get(), &attr,
                                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                             IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC)) {
    fail_call("ibv_modify_qp to RTS", error);
  }
  channel_.meet();
}

ibv_mtu Endpoint::port_mtu() const {
  ibv_port_attr port{};
  if (const int error = verbs::query_port(verbs_, context_.get(), kPort, port)) {
    fail_call("ibv_query_port", error);
  }
  return port.active_mtu;
}

void Endpoint::send_word(uint64_t value) { post_send(std::as_bytes(std::span(&value, 1)), IBV_SEND_INLINE); }

uint64_t Endpoint::receive_word() {
  const ibv_wc completion = take_received();
  uint64_t value = 0;
  if (completion.byte_len != sizeof value) {
    throw ProbeFailure(fmt::format("a message of 8 bytes arrived as {}", completion.byte_len));
  }
  std::memcpy(&value, receive_slot(receives_taken_).data(), sizeof value);
  ++receives_taken_;
  post_receive();
  return value;
}

void Endpoint::send_message(uint32_t number) { post_send(send_slot(number), 0); }

void Endpoint::receive_message(uint32_t number) {
  const ibv_wc completion = take_received();
  if (completion.byte_len != plan_.size_bytes) {
    throw ProbeFailure(
        fmt::format("message {} of {} bytes arrived as {}", number, plan_.size_bytes, completion.byte_len));
  }
  const auto wrong = find_mismatch(receive_slot(receives_taken_), number % plan_.send_slots);
  if (wrong) {
    throw ProbeFailure(fmt::format("message {} is damaged from byte {} on", number, *wrong));
  }
  ++receives_taken_;
  post_receive();
}

void Endpoint::post_receive() {
  const std::span<std::byte> slot = receive_slot(receives_posted_);
  ibv_sge sge{reinterpret_cast<uintptr_t>(slot.data()), static_cast<uint32_t>(slot.size()), mr_->lkey};
  ibv_recv_wr request{};
  request.sg_list = &sge;
  request.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  if (const int error = ibv_post_recv(qp_.get(), &request, &bad)) {
    fail_call("ibv_post_recv", error);
  }
  ++receives_posted_;
}

void Endpoint::post_send(std::span<const std::byte> bytes, unsigned flags) {
  // Never more than the other end has receives posted.
  while (sends_under_way_ >= plan_.receive_slots) {
    poll_once();
  }
  ibv_sge sge{reinterpret_cast<uintptr_t>(bytes.data()), static_cast<uint32_t>(bytes.size()), mr_->lkey};
  ibv_send_wr request{};
  request.sg_list = &sge;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.send_flags = flags;
  ibv_send_wr* bad = nullptr;
  if (const int error = ibv_post_send(qp_.get(), &request, &bad)) {
    fail_call("ibv_post_send", error);
  }
  ++sends_under_way_;
}

bool Endpoint::next_is_word() {
  wait_received();
  return arrived_.front().byte_len == sizeof(uint64_t);
}

void Endpoint::wait_received() {
  while (arrived_.empty()) {
    poll_once();
  }
}

ibv_wc Endpoint::take_received() {
  wait_received();
  const ibv_wc completion = arrived_.front();
  arrived_.pop_front();
  return completion;
}

void Endpoint::poll_once() {
  std::array<ibv_wc, 16> completions;
  const int count = ibv_poll_cq(cq_.get(), static_cast<int>(completions.size()), completions.data());
  if (count < 0) {
    throw ProbeFailure("ibv_poll_cq failed");
  }
  for (int i = 0; i < count; ++i) {
    const ibv_wc& one = completions[static_cast<size_t>(i)];
    if (one.status != IBV_WC_SUCCESS) {
      throw ProbeFailure(fmt::format("completion: {}", verbs_.wc_status_str(one.status)));
    }
    if ((one.opcode & IBV_WC_RECV) != 0) {
      arrived_.push_back(one);
    } else {
      --sends_under_way_;
    }
  }
  if (count == 0 && base::now_ns() > channel_.deadline_ns()) {
    throw ProbeFailure("nothing arrived in time");
  }
}

std::span<std::byte> Endpoint::send_slot(uint32_t number) {
  return std::span(memory_).subspan(plan_.size_bytes * (number % plan_.send_slots), plan_.size_bytes);
}

std::span<std::byte> Endpoint::receive_slot(uint64_t count) {
  return std::span(memory_).subspan(plan_.size_bytes * (plan_.send_slots + count % plan_.receive_slots),
                                    plan_.size_bytes);
}

}  // namespace ringbolt::tools
