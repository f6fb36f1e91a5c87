// One queue pair with its completion queues, brought to any state.
#pragma once

#include <vector>

#include "device.h"
#include "region.h"

namespace ringbolt::conformance {

/// How a queue pair is made and connected. A plain value: it travels to the peer process.
struct QpOptions {
  ibv_qp_type type = IBV_QPT_RC;
  uint32_t send_wr = 64;
  uint32_t recv_wr = 64;
  uint32_t send_sge = 16;
  uint32_t recv_sge = 16;
  uint32_t inline_bytes = 0;
  bool signals_all = false;
  int cq_entries = 512;
  ibv_mtu path_mtu = IBV_MTU_4096;
  uint8_t timeout = 14;
  uint8_t retry_cnt = 3;
  uint8_t rnr_retry = 7;
  uint8_t min_rnr_timer = 12;
  uint8_t rd_atomic = 8;
  unsigned access = kAllAccess;
};

/// Where a queue pair can be reached.
struct QpAddress {
  uint32_t qp_num = 0;
  uint32_t psn = 0;
  uint16_t lid = 0;
  ibv_gid gid{};
};

inline constexpr uint32_t kQkey = 0x11223344;

/// Parts that an endpoint borrows instead of making its own.
struct Parts {
  ibv_pd* pd = nullptr;
  ibv_cq* send_cq = nullptr;
  ibv_cq* recv_cq = nullptr;
  ibv_srq* srq = nullptr;
};

/// A queue pair. Not thread-safe in itself; the verbs calls on qp() are.
class Endpoint {
 public:
  Endpoint(const Device& device, const QpOptions& options, const Parts& parts = {});

  ibv_qp* qp() const { return qp_.get(); }
  ibv_pd* pd() const { return pd_; }
  ibv_cq* send_cq() const { return qp_->send_cq; }
  ibv_cq* recv_cq() const { return qp_->recv_cq; }
  const QpOptions& options() const { return options_; }
  /// What ibv_create_qp granted.
  const ibv_qp_cap& cap() const { return cap_; }
  QpAddress address() const;

  /// The attributes and mask that a program gives for each step; to be changed and passed on.
  ibv_qp_attr init_attr(int& mask) const;
  ibv_qp_attr rtr_attr(const QpAddress& peer, int& mask) const;
  ibv_qp_attr rts_attr(int& mask) const;

  /// Each returns ibv_modify_qp's answer.
  int to_init();
  int to_rtr(const QpAddress& peer);
  int to_rts();
  int to_state(ibv_qp_state state);

  /// RESET -> RTS towards `peer`; throws SetUpError when refused. UD ignores the peer.
  void connect(const QpAddress& peer);

  /// As ibv_query_qp reports it.
  ibv_qp_state state() const;

  void destroy_qp() { qp_.reset(); }

 private:
  const Device* device_;
  QpOptions options_;
  Pd own_pd_;
  Cq own_send_cq_;
  Cq own_recv_cq_;
  ibv_pd* pd_;
  ibv_qp_cap cap_{};
  Qp qp_;
};

/// Connects the two with each other.
void connect(Endpoint& a, Endpoint& b);

/// An address vector to `gid` from the device's own GID.
ibv_ah_attr address_vector(const Device& device, const ibv_gid& gid);
Ah make_ah(const Device& device, ibv_pd* pd, const ibv_gid& gid);

/// A send work request and its list, ready to be changed and posted.
struct SendWr {
  ibv_send_wr wr{};
  std::vector<ibv_sge> sges;

  SendWr(uint64_t wr_id, ibv_wr_opcode opcode, std::vector<ibv_sge> list,
         unsigned flags = IBV_SEND_SIGNALED);
  SendWr& remote(uint64_t address, uint32_t rkey);
  SendWr& atomic(uint64_t address, uint32_t rkey, uint64_t compare_add, uint64_t swap = 0);
  SendWr& datagram(ibv_ah* ah, uint32_t qp_num, uint32_t qkey = kQkey);
  SendWr& immediate(uint32_t value);
  SendWr& invalidate(uint32_t rkey);
  /// ibv_post_send's answer.
  int post(ibv_qp* qp);
};

/// ibv_post_recv's answer.
int post_recv(ibv_qp* qp, uint64_t wr_id, std::vector<ibv_sge> sges);
int post_srq_recv(ibv_srq* srq, uint64_t wr_id, std::vector<ibv_sge> sges);

/// Waits for one completion; throws SetUpError with the state of the queue when none comes in time.
ibv_wc wait_completion(ibv_cq* cq);
std::vector<ibv_wc> wait_completions(ibv_cq* cq, size_t count);

/// Polls once and says whether the queue was empty.
bool is_empty(ibv_cq* cq);

/// "IBV_WC_..." text for messages.
std::string describe(const ibv_wc& wc);

/// Expects success and the given identity.
void expect_success(const ibv_wc& wc, uint64_t wr_id, ibv_wc_opcode opcode);
/// Expects the given status and identity; other fields of a failed completion mean nothing.
void expect_status(const ibv_wc& wc, uint64_t wr_id, ibv_wc_status status);

const char* type_name(ibv_qp_type type);

}  // namespace ringbolt::conformance
