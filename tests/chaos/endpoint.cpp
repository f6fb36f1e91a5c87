#include "endpoint.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "pattern.h"

namespace ringbolt::chaos {
namespace {

constexpr std::size_t kAreas = static_cast<std::size_t>(Area::count);
constexpr std::size_t kMemoryBytes = kAreas * kWindow * kSlotBytes;
constexpr std::uint8_t kPort = 1;
constexpr std::uint8_t kReads = 8;
constexpr std::uint8_t kRnrTimer = 30;  // 327.68 ms

template <class T>
T* made(T* object, const char* call) {
  if (object == nullptr) throw std::runtime_error(std::string(call) + ": " + std::strerror(errno));
  return object;
}

void require(int error, const char* call) {
  if (error != 0) throw std::runtime_error(std::string(call) + ": " + std::strerror(error));
}

unsigned access_for(ibv_qp_type type) {
  unsigned access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
  if (type == IBV_QPT_RC) access |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
  return access;
}

std::size_t offset_of(Area area, std::size_t index) { return (static_cast<std::size_t>(area) * kWindow + index) * kSlotBytes; }

}  // namespace

void die(const std::string& message) {
  std::printf("broken %s\n", message.c_str());
  std::fflush(stdout);
  _exit(3);
}

Endpoint::Endpoint(ibv_context* context, int gid_index, const RoundSettings& settings)
    : settings_(settings), gid_index_(gid_index), memory_(kMemoryBytes) {
  require(ibv_query_gid(context, kPort, gid_index, &gid_), "ibv_query_gid");
  psn_ = static_cast<std::uint32_t>(settings.seed * 2654435761U + settings.side) & 0xFFFFFFU;
  pd_.reset(made(ibv_alloc_pd(context), "ibv_alloc_pd"));
  mr_.reset(made(ibv_reg_mr(pd_.get(), memory_.data(), memory_.size(), access_for(IBV_QPT_RC)), "ibv_reg_mr"));
  channel_.reset(made(ibv_create_comp_channel(context), "ibv_create_comp_channel"));
  cq_.reset(made(ibv_create_cq(context, 4 * kWindow, nullptr, channel_.get(), 0), "ibv_create_cq"));
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq_.get();
  init.cap = {.max_send_wr = 2 * kWindow, .max_recv_wr = kWindow, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
  init.qp_type = settings.type;
  qp_.reset(made(ibv_create_qp(pd_.get(), &init), "ibv_create_qp"));
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = kPort;
  attr.qkey = kQkey;
  attr.qp_access_flags = access_for(settings.type);
  const int what = settings.type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
  require(ibv_modify_qp(qp_.get(), &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | what), "ibv_modify_qp INIT");
  fill_pattern(slot(Area::source, 0), {settings.round, settings.side, 0});
}

PeerInfo Endpoint::info() const {
  return {qp_->qp_num, psn_, mr_->rkey, reinterpret_cast<std::uintptr_t>(memory_.data()), gid_};
}

int Endpoint::connect(const PeerInfo& peer) {
  return settings_.type == IBV_QPT_UD ? connect_datagram(peer) : connect_reliable_or_unreliable(peer);
}

int Endpoint::connect_reliable_or_unreliable(const PeerInfo& peer) {
  const bool is_reliable = settings_.type == IBV_QPT_RC;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_4096;
  attr.dest_qp_num = peer.qp_num;
  attr.rq_psn = peer.psn;
  attr.max_dest_rd_atomic = kReads;
  attr.min_rnr_timer = kRnrTimer;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = kPort;
  attr.ah_attr.grh.dgid = peer.gid;
  attr.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(gid_index_);
  attr.ah_attr.grh.hop_limit = 64;
  int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  if (is_reliable) mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  if (const int error = ibv_modify_qp(qp_.get(), &attr, mask); error != 0) return error;
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = settings_.timeout;
  attr.retry_cnt = settings_.retry_count;
  attr.rnr_retry = settings_.rnr_retry;
  attr.sq_psn = psn_;
  attr.max_rd_atomic = kReads;
  mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
  if (is_reliable) mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  return ibv_modify_qp(qp_.get(), &attr, mask);
}

int Endpoint::connect_datagram(const PeerInfo& peer) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTR;
  if (const int error = ibv_modify_qp(qp_.get(), &attr, IBV_QP_STATE); error != 0) return error;
  attr.qp_state = IBV_QPS_RTS;
  attr.sq_psn = psn_;
  if (const int error = ibv_modify_qp(qp_.get(), &attr, IBV_QP_STATE | IBV_QP_SQ_PSN); error != 0) return error;
  ibv_ah_attr address{};
  address.is_global = 1;
  address.port_num = kPort;
  address.grh.dgid = peer.gid;
  address.grh.sgid_index = static_cast<std::uint8_t>(gid_index_);
  address.grh.hop_limit = 64;
  ah_.reset(ibv_create_ah(pd_.get(), &address));
  return ah_ ? 0 : errno;
}

std::span<std::byte> Endpoint::slot(Area area, std::size_t index) {
  return std::span(memory_).subspan(offset_of(area, index), kSlotBytes);
}

std::uint64_t Endpoint::remote_offset(Area area, std::size_t index) { return offset_of(area, index); }

}  // namespace ringbolt::chaos
