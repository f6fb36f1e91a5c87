#include "endpoint.h"

#include <arpa/inet.h>

#include <algorithm>

namespace ringbolt::conformance {

Endpoint::Endpoint(const Device& device, const QpOptions& options, const Parts& parts)
    : device_(&device), options_(options) {
  if (parts.pd == nullptr) {
    own_pd_ = make_pd(device);
  }
  pd_ = parts.pd != nullptr ? parts.pd : own_pd_.get();
  if (parts.send_cq == nullptr) {
    own_send_cq_ = make_cq(device, options.cq_entries);
  }
  if (parts.recv_cq == nullptr) {
    own_recv_cq_ = make_cq(device, options.cq_entries);
  }
  ibv_qp_init_attr init{};
  init.send_cq = parts.send_cq != nullptr ? parts.send_cq : own_send_cq_.get();
  init.recv_cq = parts.recv_cq != nullptr ? parts.recv_cq : own_recv_cq_.get();
  init.srq = parts.srq;
  init.qp_type = options.type;
  init.sq_sig_all = options.signals_all ? 1 : 0;
  init.cap = {options.send_wr, options.recv_wr, options.send_sge, options.recv_sge,
              options.inline_bytes};
  qp_.reset(must(ibv_create_qp(pd_, &init), "ibv_create_qp"));
  cap_ = init.cap;
}

QpAddress Endpoint::address() const {
  return {qp_->qp_num, qp_->qp_num & 0xfff, device_->port.lid, device_->gid};
}

ibv_qp_attr Endpoint::init_attr(int& mask) const {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = device_->port_num;
  attr.qkey = kQkey;
  attr.qp_access_flags = options_.access;
  mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
  mask |= options_.type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
  return attr;
}

ibv_qp_attr Endpoint::rtr_attr(const QpAddress& peer, int& mask) const {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = options_.path_mtu;
  attr.dest_qp_num = peer.qp_num;
  attr.rq_psn = peer.psn;
  attr.max_dest_rd_atomic = options_.rd_atomic;
  attr.min_rnr_timer = options_.min_rnr_timer;
  attr.ah_attr = address_vector(*device_, peer.gid);
  mask = IBV_QP_STATE;
  if (options_.type != IBV_QPT_UD) {
    mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  }
  if (options_.type == IBV_QPT_RC) {
    mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  }
  return attr;
}

ibv_qp_attr Endpoint::rts_attr(int& mask) const {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTS;
  attr.sq_psn = address().psn;
  attr.timeout = options_.timeout;
  attr.retry_cnt = options_.retry_cnt;
  attr.rnr_retry = options_.rnr_retry;
  attr.max_rd_atomic = options_.rd_atomic;
  mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
  if (options_.type == IBV_QPT_RC) {
    mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  }
  return attr;
}

int Endpoint::to_init() {
  int mask = 0;
  ibv_qp_attr attr = init_attr(mask);
  return ibv_modify_qp(qp(), &attr, mask);
}

int Endpoint::to_rtr(const QpAddress& peer) {
  int mask = 0;
  ibv_qp_attr attr = rtr_attr(peer, mask);
  return ibv_modify_qp(qp(), &attr, mask);
}

int Endpoint::to_rts() {
  int mask = 0;
  ibv_qp_attr attr = rts_attr(mask);
  return ibv_modify_qp(qp(), &attr, mask);
}

int Endpoint::to_state(ibv_qp_state state) {
  ibv_qp_attr attr{};
  attr.qp_state = state;
  return ibv_modify_qp(qp(), &attr, IBV_QP_STATE);
}

void Endpoint::connect(const QpAddress& peer) {
  must_succeed(to_init(), "RESET -> INIT");
  must_succeed(to_rtr(peer), "INIT -> RTR");
  must_succeed(to_rts(), "RTR -> RTS");
}

ibv_qp_state Endpoint::state() const {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  must_succeed(ibv_query_qp(qp(), &attr, IBV_QP_STATE, &init), "ibv_query_qp");
  return attr.qp_state;
}

void connect(Endpoint& a, Endpoint& b) {
  a.connect(b.address());
  b.connect(a.address());
}

ibv_ah_attr address_vector(const Device& device, const ibv_gid& gid) {
  ibv_ah_attr attr{};
  attr.is_global = 1;
  attr.grh.dgid = gid;
  attr.grh.sgid_index = device.gid_index;
  attr.grh.hop_limit = 1;
  attr.port_num = device.port_num;
  return attr;
}

Ah make_ah(const Device& device, ibv_pd* pd, const ibv_gid& gid) {
  ibv_ah_attr attr = address_vector(device, gid);
  return Ah(must(ibv_create_ah(pd, &attr), "ibv_create_ah"));
}

SendWr::SendWr(uint64_t wr_id, ibv_wr_opcode opcode, std::vector<ibv_sge> list, unsigned flags)
    : sges(std::move(list)) {
  wr.wr_id = wr_id;
  wr.opcode = opcode;
  wr.send_flags = flags;
}

SendWr& SendWr::remote(uint64_t address, uint32_t rkey) {
  wr.wr.rdma.remote_addr = address;
  wr.wr.rdma.rkey = rkey;
  return *this;
}

SendWr& SendWr::atomic(uint64_t address, uint32_t rkey, uint64_t compare_add, uint64_t swap) {
  wr.wr.atomic.remote_addr = address;
  wr.wr.atomic.rkey = rkey;
  wr.wr.atomic.compare_add = compare_add;
  wr.wr.atomic.swap = swap;
  return *this;
}

SendWr& SendWr::datagram(ibv_ah* ah, uint32_t qp_num, uint32_t qkey) {
  wr.wr.ud.ah = ah;
  wr.wr.ud.remote_qpn = qp_num;
  wr.wr.ud.remote_qkey = qkey;
  return *this;
}

SendWr& SendWr::immediate(uint32_t value) {
  wr.imm_data = htonl(value);
  return *this;
}

SendWr& SendWr::invalidate(uint32_t rkey) {
  wr.invalidate_rkey = rkey;
  return *this;
}

int SendWr::post(ibv_qp* qp) {
  wr.sg_list = sges.data();
  wr.num_sge = static_cast<int>(sges.size());
  ibv_send_wr* bad = nullptr;
  const int error = ibv_post_send(qp, &wr, &bad);
  EXPECT_TRUE(error == 0 || bad == &wr) << "the refused work request is not named";
  return error;
}

int post_recv(ibv_qp* qp, uint64_t wr_id, std::vector<ibv_sge> sges) {
  ibv_recv_wr wr{wr_id, nullptr, sges.data(), static_cast<int>(sges.size())};
  ibv_recv_wr* bad = nullptr;
  const int error = ibv_post_recv(qp, &wr, &bad);
  EXPECT_TRUE(error == 0 || bad == &wr) << "the refused work request is not named";
  return error;
}

int post_srq_recv(ibv_srq* srq, uint64_t wr_id, std::vector<ibv_sge> sges) {
  ibv_recv_wr wr{wr_id, nullptr, sges.data(), static_cast<int>(sges.size())};
  ibv_recv_wr* bad = nullptr;
  const int error = ibv_post_srq_recv(srq, &wr, &bad);
  EXPECT_TRUE(error == 0 || bad == &wr) << "the refused work request is not named";
  return error;
}

const char* type_name(ibv_qp_type type) {
  switch (type) {
    case IBV_QPT_RC:
      return "RC";
    case IBV_QPT_UC:
      return "UC";
    case IBV_QPT_UD:
      return "UD";
    default:
      return "other";
  }
}

}  // namespace ringbolt::conformance
