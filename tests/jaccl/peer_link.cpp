#include "peer_link.h"

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace ringbolt::jaccl {
namespace {

[[noreturn]] void fail(const std::string& what, int error) {
  throw std::runtime_error(what + ": " + std::strerror(error));
}

bool is_mapped_ipv4(const ibv_gid& gid) {
  constexpr uint8_t kPrefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(gid.raw, kPrefix, sizeof kPrefix) == 0;
}

}  // namespace

PeerLink::PeerLink(const RdmaLibrary& rdma, const std::string& device_name) : rdma_(&rdma) {
  open(device_name);
  // The result is ignored in the original, which then reads what the library left in the struct.
  rdma_->query_port(context_, 1, &port_);
  find_gid();
  pd_ = rdma_->alloc_pd(context_);
  cq_ = pd_ != nullptr ? rdma_->create_cq(context_, kCompletionEntries, nullptr, nullptr, 0)
                       : nullptr;
  if (cq_ == nullptr) {
    fail("alloc_pd or create_cq", errno);
  }
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq_;
  init.cap.max_send_wr = init.cap.max_recv_wr = kQueueDepth;
  init.cap.max_send_sge = init.cap.max_recv_sge = 1;
  // Tests ask for another type to see it refused.
  const char* type = std::getenv("JACCL_TEST_QP_TYPE");
  init.qp_type = type != nullptr && std::strcmp(type, "RC") == 0 ? IBV_QPT_RC : IBV_QPT_UC;
  qp_ = rdma_->create_qp(pd_, &init);
  if (qp_ == nullptr) {
    fail("create_qp", errno);
  }
}

PeerLink::~PeerLink() {
  // The original's order: receives may still be posted.
  for (ibv_mr* mr : memory_) {
    rdma_->dereg_mr(mr);
  }
  if (qp_ != nullptr) {
    rdma_->destroy_qp(qp_);
  }
  if (cq_ != nullptr) {
    rdma_->destroy_cq(cq_);
  }
  if (pd_ != nullptr) {
    rdma_->dealloc_pd(pd_);
  }
  if (context_ != nullptr) {
    rdma_->close_device(context_);
  }
}

void PeerLink::open(const std::string& device_name) {
  int count = 0;
  ibv_device** list = rdma_->get_device_list(&count);
  if (list == nullptr) {
    fail("get_device_list", errno);
  }
  for (int i = 0; i < count && context_ == nullptr; ++i) {
    if (device_name == rdma_->get_device_name(list[i])) {
      context_ = rdma_->open_device(list[i]);
    }
  }
  // The context outlives the list that its device came from.
  rdma_->free_device_list(list);
  if (context_ == nullptr) {
    fail("no device " + device_name + " among " + std::to_string(count), ENODEV);
  }
}

void PeerLink::find_gid() {
  for (int index = 0; index < port_.gid_tbl_len; ++index) {
    if (rdma_->query_gid(context_, 1, index, &gid_) == 0 && is_mapped_ipv4(gid_)) {
      return;
    }
  }
  fail("no IPv4-mapped GID in a table of " + std::to_string(port_.gid_tbl_len), ENOENT);
}

PeerRecord PeerLink::record() const {
  PeerRecord record;
  record.lid = port_.lid;
  record.qp_num = static_cast<int32_t>(qp_->qp_num);
  record.psn = kPsn;
  std::memcpy(record.gid.data(), gid_.raw, record.gid.size());
  return record;
}

void PeerLink::modify(ibv_qp_attr& attr, int mask, const char* step) {
  if (const int error = rdma_->modify_qp(qp_, &attr, mask)) {
    fail(step, error);
  }
}

void PeerLink::connect(const PeerRecord& peer) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.pkey_index = 0;
  attr.qp_access_flags = 0x7;
  modify(attr, 0x39, "to INIT");

  attr = {};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = static_cast<ibv_mtu>(3);
  attr.rq_psn = static_cast<uint32_t>(peer.psn);
  attr.dest_qp_num = static_cast<uint32_t>(peer.qp_num);
  attr.ah_attr.dlid = static_cast<uint16_t>(peer.lid);
  attr.ah_attr.sl = 0;
  attr.ah_attr.port_num = 1;
  uint64_t interface_id = 0;
  std::memcpy(&interface_id, peer.gid.data() + 8, sizeof interface_id);
  if (interface_id != 0) {
    attr.ah_attr.is_global = 1;
    attr.ah_attr.grh.hop_limit = 1;
    std::memcpy(attr.ah_attr.grh.dgid.raw, peer.gid.data(), peer.gid.size());
    attr.ah_attr.grh.sgid_index = 1;  // whatever index the scan found
  }
  modify(attr, 0x101181, "to RTR");

  attr = {};
  attr.qp_state = IBV_QPS_RTS;
  attr.sq_psn = kPsn;
  modify(attr, 0x10001, "to RTS");
}

size_t PeerLink::add_memory(void* memory, size_t length_bytes) {
  ibv_mr* mr = rdma_->reg_mr(pd_, memory, length_bytes, 0x7);
  if (mr == nullptr) {
    fail("reg_mr", errno);
  }
  memory_.push_back(mr);
  return memory_.size() - 1;
}

void PeerLink::post_send(uint64_t wr_id, size_t memory, uint32_t length_bytes) {
  const ibv_mr* mr = memory_[memory];
  ibv_sge piece{reinterpret_cast<uint64_t>(mr->addr), length_bytes, mr->lkey};
  // The original leaves what its operation does not define as the stack happened to be.
  ibv_send_wr wr;
  std::memset(static_cast<void*>(&wr), 0xA5, sizeof wr);
  wr.wr_id = wr_id;
  wr.next = nullptr;
  wr.sg_list = &piece;
  wr.num_sge = 1;
  wr.opcode = static_cast<ibv_wr_opcode>(2);
  wr.send_flags = 2;
  ibv_send_wr* bad = nullptr;
  if (const int error = ibv_post_send(qp_, &wr, &bad)) {
    fail("post_send", error);
  }
}

void PeerLink::post_receive(uint64_t wr_id, size_t memory, uint32_t length_bytes) {
  const ibv_mr* mr = memory_[memory];
  ibv_sge piece{reinterpret_cast<uint64_t>(mr->addr), length_bytes, mr->lkey};
  ibv_recv_wr wr{wr_id, nullptr, &piece, 1};
  ibv_recv_wr* bad = nullptr;
  if (const int error = ibv_post_recv(qp_, &wr, &bad)) {
    fail("post_recv", error);
  }
}

std::vector<ibv_wc> PeerLink::poll() {
  std::vector<ibv_wc> completions(16);
  const int count = ibv_poll_cq(cq_, 16, completions.data());
  if (count < 0) {
    fail("poll_cq returned " + std::to_string(count), EIO);
  }
  completions.resize(static_cast<size_t>(count));
  return completions;
}

}  // namespace ringbolt::jaccl
