#include "pair/queue_pair.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/clock.h"
#include "failure.h"
#include "pair/values.h"
#include "verbs/codes.h"

namespace ringbolt::tools::pair {
namespace {

ibv_qp_type type_of(Transport transport) {
  switch (transport) {
    case Transport::kUc:
      return IBV_QPT_UC;
    case Transport::kUd:
      return IBV_QPT_UD;
    case Transport::kRc:
      break;
  }
  return IBV_QPT_RC;
}

}  // namespace

QueuePair::QueuePair(const Device& device, const QueuePairPlan& plan)
    // Another one each time, of 24 bits: packets of an earlier run are out of sequence.
    : transport_(plan.transport), psn_(static_cast<uint32_t>(base::now_ns() >> 4U) & 0xffffffU) {
  const bool is_usual = plan.inline_bytes < 0;
  try {
    make(device, plan, static_cast<uint32_t>(is_usual ? kUsualInlineBytes : plan.inline_bytes));
  } catch (const ProbeFailure&) {
    if (!is_usual) {
      throw;
    }
    make(device, plan, 0);  // there are devices without
  }
  if (!is_usual && plan.inline_bytes > static_cast<int>(inline_bytes_)) {
    throw ProbeFailure(
        fmt::format("the device grants {} bytes inline, -I {} asks for more", inline_bytes_, plan.inline_bytes));
  }
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = device.port();
  attr.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | plan.remote_access;
  attr.qkey = kQueueKey;
  const int last = transport_ == Transport::kUd ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
  if (const int error = device.verbs().modify_qp(get(), &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | last)) {
    fail_call("ibv_modify_qp to INIT", error);
  }
}

void QueuePair::make(const Device& device, const QueuePairPlan& plan, uint32_t inline_bytes) {
  ibv_qp_init_attr wanted{};
  wanted.send_cq = plan.send_cq;
  wanted.recv_cq = plan.receive_cq;
  wanted.qp_type = type_of(transport_);
  const auto depth_of = [&](uint32_t messages) {
    const uint64_t depth = messages * device.depth_of_message(plan.message_bytes);
    const auto most = static_cast<uint64_t>(std::max(device.limits().max_qp_wr, 1));
    return static_cast<uint32_t>(device.counts_frames() ? std::min(depth, most) : depth);
  };
  wanted.cap.max_send_wr = depth_of(plan.send_depth);
  wanted.cap.max_recv_wr = depth_of(plan.receive_depth);
  wanted.cap.max_send_sge = wanted.cap.max_recv_sge = 1;
  wanted.cap.max_inline_data = inline_bytes;
  qp_ = device.own(device.verbs().create_qp(device.pd(), &wanted), "ibv_create_qp");
  inline_bytes_ = wanted.cap.max_inline_data;
  send_depth_ = wanted.cap.max_send_wr;
  receive_depth_ = wanted.cap.max_recv_wr;
}

ibv_ah_attr QueuePair::path_to(const Device& device, const Offer& peer) const {
  ibv_ah_attr path{};
  path.is_global = 1;
  path.dlid = peer.lid;
  path.port_num = device.port();
  std::memcpy(path.grh.dgid.raw, peer.gid.data(), peer.gid.size());
  path.grh.sgid_index = device.gid_index();
  path.grh.hop_limit = 64;
  return path;
}

void QueuePair::connect_reliably(const Device& device, const Offer& peer, const QueuePairAddress& address,
                                 const PortChoice& choice) {
  const bool is_rc = transport_ == Transport::kRc;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = verbs::mtu_code(std::min(device.mtu_bytes(), peer.mtu_bytes));
  attr.dest_qp_num = address.number;
  attr.rq_psn = address.psn;
  attr.max_dest_rd_atomic = device.target_depth();
  // 0.64 ms (InfiniBand Architecture Specification 1.4, 9.7.5.2.8, table 45).
  attr.min_rnr_timer = 12;
  attr.ah_attr = path_to(device, peer);
  if (const int error =
          device.verbs().modify_qp(get(), &attr,
                                   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                       (is_rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0))) {
    fail_call("ibv_modify_qp to RTR", error);
  }
  attr = {};
  attr.qp_state = IBV_QPS_RTS;
  attr.sq_psn = psn_;
  attr.timeout = choice.timeout_code;
  attr.retry_cnt = choice.retry_count;
  // For ever: a peer without a receive is late, not gone.
  attr.rnr_retry = 7;
  attr.max_rd_atomic = static_cast<uint8_t>(std::min<uint32_t>(device.initiator_depth(), peer.target_depth));
  if (const int error = device.verbs().modify_qp(
          get(), &attr,
          IBV_QP_STATE | IBV_QP_SQ_PSN |
              (is_rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0))) {
    fail_call("ibv_modify_qp to RTS", error);
  }
}

void QueuePair::connect(const Device& device, const Offer& peer, const QueuePairAddress& address,
                        const PortChoice& choice) {
  if (transport_ != Transport::kUd) {
    connect_reliably(device, peer, address, choice);
    return;
  }
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  if (const int error = device.verbs().modify_qp(get(), &attr, IBV_QP_STATE)) {
    fail_call("ibv_modify_qp to RTR", error);
  }
  attr.qp_state = IBV_QPS_RTS;
  attr.sq_psn = psn_;
  if (const int error = device.verbs().modify_qp(get(), &attr, IBV_QP_STATE | IBV_QP_SQ_PSN)) {
    fail_call("ibv_modify_qp to RTS", error);
  }
  ibv_ah_attr path = path_to(device, peer);
  handle_ = device.own(device.verbs().create_ah(device.pd(), &path), "ibv_create_ah");
  peer_number_ = address.number;
}

void QueuePair::post_receive(std::span<std::byte> slot, uint32_t local_key, uint64_t id) const {
  if (const int error = try_post_receive(slot, local_key, id)) {
    fail_call("ibv_post_recv", error);
  }
}

int QueuePair::try_post_receive(std::span<std::byte> slot, uint32_t local_key, uint64_t id) const {
  ibv_sge sge{reinterpret_cast<uintptr_t>(slot.data()), static_cast<uint32_t>(slot.size()), local_key};
  ibv_recv_wr request{};
  request.wr_id = id;
  request.sg_list = &sge;
  request.num_sge = 1;
  ibv_recv_wr* bad = nullptr;
  return ibv_post_recv(get(), &request, &bad);
}

Offer connect_all(const Device& device, std::span<QueuePair* const> queue_pairs, Offer mine, const PortChoice& choice,
                  Peer& peer) {
  std::copy(std::begin(device.gid().raw), std::end(device.gid().raw), mine.gid.begin());
  mine.lid = device.lid();
  mine.mtu_bytes = device.mtu_bytes();
  mine.target_depth = device.target_depth();
  for (const QueuePair* one : queue_pairs) {
    mine.queue_pairs.push_back(one->address());
  }
  Offer theirs = exchange(peer, "offer", mine, "its queue pairs' addresses");
  if (theirs.queue_pairs.size() != queue_pairs.size()) {
    peer.fail("the other end has {} queue pairs, and this one {}", theirs.queue_pairs.size(), queue_pairs.size());
  }
  for (size_t index = 0; index < queue_pairs.size(); ++index) {
    queue_pairs[index]->connect(device, theirs, theirs.queue_pairs[index], choice);
  }
  return theirs;
}

}  // namespace ringbolt::tools::pair
