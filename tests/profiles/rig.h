#pragma once

#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "deadline.h"

/// Verbs objects of a device that is like another machine's, for tests of what it refuses.
namespace ringbolt::profiles {

inline std::string name_of_profile(const testing::TestParamInfo<const char*>& given) { return given.param; }

struct Close {
  void operator()(ibv_context* c) const { ibv_close_device(c); }
  void operator()(ibv_pd* pd) const { ibv_dealloc_pd(pd); }
  void operator()(ibv_cq* cq) const { ibv_destroy_cq(cq); }
  void operator()(ibv_qp* qp) const { ibv_destroy_qp(qp); }
  void operator()(ibv_mr* mr) const { ibv_dereg_mr(mr); }
  void operator()(ibv_ah* handle) const { ibv_destroy_ah(handle); }
  void operator()(void* memory) const { std::free(memory); }
};
template <class T>
using Held = std::unique_ptr<T, Close>;

/// Sets RINGBOLT_LIKE while it lives.
class Like {
 public:
  explicit Like(const std::string& profile) { setenv("RINGBOLT_LIKE", profile.c_str(), 1); }
  ~Like() { unsetenv("RINGBOLT_LIKE"); }
  Like(const Like&) = delete;
  Like& operator=(const Like&) = delete;
};

/// Sets RINGBOLT_FAULTS while a device is opened.
class Faults {
 public:
  explicit Faults(const std::string& text) { setenv("RINGBOLT_FAULTS", text.c_str(), 1); }
  ~Faults() { unsetenv("RINGBOLT_FAULTS"); }
  Faults(const Faults&) = delete;
  Faults& operator=(const Faults&) = delete;
};

/// The device opened, with a protection domain and a completion queue.
class Rig {
 public:
  explicit Rig(const std::string& profile) : like_(profile) {
    int count = 0;
    ibv_device** list = ibv_get_device_list(&count);
    if (list == nullptr || count == 0) {
      throw std::runtime_error("no device like " + profile);
    }
    context.reset(ibv_open_device(list[0]));
    ibv_free_device_list(list);
    pd.reset(ibv_alloc_pd(context.get()));
    cq.reset(ibv_create_cq(context.get(), 4096, nullptr, nullptr, 0));
  }

  ibv_qp_init_attr wanted(ibv_qp_type type = IBV_QPT_UC, uint32_t depth = 32) const {
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq.get();
    init.cap = {depth, depth, 1, 1, 0};
    init.qp_type = type;
    init.sq_sig_all = 1;
    return init;
  }
  /// Null with errno set when refused.
  Held<ibv_qp> make_qp(ibv_qp_init_attr init) const { return Held<ibv_qp>(ibv_create_qp(pd.get(), &init)); }
  Held<ibv_qp> make_qp() const { return make_qp(wanted()); }

  ibv_gid gid(int index) const {
    ibv_gid value{};
    if (ibv_query_gid(context.get(), 1, index, &value) != 0) {
      throw std::runtime_error("no GID index " + std::to_string(index));
    }
    return value;
  }
  ibv_port_attr port() const {
    ibv_port_attr attributes{};
    ibv_query_port(context.get(), 1, &attributes);
    return attributes;
  }
  ibv_device_attr device() const {
    ibv_device_attr attributes{};
    ibv_query_device(context.get(), &attributes);
    return attributes;
  }

 private:
  Like like_;

 public:
  Held<ibv_context> context;
  Held<ibv_pd> pd;
  Held<ibv_cq> cq;
};

/// Memory on a boundary of 16 KiB, and its region.
struct Buffer {
  Buffer(const Rig& rig, size_t size) : memory(std::aligned_alloc(16384, (size + 16383) / 16384 * 16384)), bytes(size) {
    std::memset(memory.get(), 0, size);
    mr.reset(ibv_reg_mr(rig.pd.get(), memory.get(), size, IBV_ACCESS_LOCAL_WRITE));
  }
  uint8_t* data() const { return static_cast<uint8_t*>(memory.get()); }
  ibv_sge piece(size_t length, size_t from = 0) const {
    return {reinterpret_cast<uint64_t>(data() + from), static_cast<uint32_t>(length), mr == nullptr ? 0 : mr->lkey};
  }

  Held<void> memory;
  size_t bytes;
  Held<ibv_mr> mr;
};

// The steps as JACCL takes them. Each returns what ibv_modify_qp says.
inline int to_init(ibv_qp* qp) {
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_INIT;
  a.port_num = 1;
  a.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
  return ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
}
inline int to_rtr(ibv_qp* qp, uint32_t peer, const ibv_gid& gid, uint8_t index) {
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_RTR;
  a.path_mtu = IBV_MTU_1024;
  a.dest_qp_num = peer;
  a.rq_psn = 7;
  a.ah_attr.port_num = 1;
  a.ah_attr.is_global = 1;
  a.ah_attr.grh.dgid = gid;
  a.ah_attr.grh.sgid_index = index;
  a.ah_attr.grh.hop_limit = 1;
  int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
  if (qp->qp_type == IBV_QPT_RC) {
    a.max_dest_rd_atomic = 1;
    a.min_rnr_timer = 12;  // 0.64 ms
    mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  }
  return ibv_modify_qp(qp, &a, mask);
}
inline int to_rts(ibv_qp* qp) {
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_RTS;
  a.sq_psn = 7;
  int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
  if (qp->qp_type == IBV_QPT_RC) {
    a.timeout = 14;
    a.retry_cnt = a.rnr_retry = 7;
    a.max_rd_atomic = 1;
    mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  }
  return ibv_modify_qp(qp, &a, mask);
}

/// Two queue pairs of one rig, connected to each other by GID index 1.
struct Pair {
  explicit Pair(const Rig& rig, ibv_qp_init_attr init) : a(rig.make_qp(init)), b(rig.make_qp(init)) {
    if (a == nullptr || b == nullptr) {
      throw std::runtime_error(std::string("no queue pair: ") + std::strerror(errno));
    }
    for (ibv_qp* qp : {a.get(), b.get()}) {
      ibv_qp* other = qp == a.get() ? b.get() : a.get();
      if (to_init(qp) != 0 || to_rtr(qp, other->qp_num, rig.gid(1), 1) != 0 || to_rts(qp) != 0) {
        throw std::runtime_error("no connection");
      }
    }
  }
  explicit Pair(const Rig& rig) : Pair(rig, rig.wanted()) {}
  Held<ibv_qp> a;
  Held<ibv_qp> b;
};

inline int post_send(ibv_qp* qp, ibv_sge piece, ibv_wr_opcode opcode = IBV_WR_SEND, ibv_send_wr** bad = nullptr,
                     uint64_t wr_id = 1) {
  ibv_send_wr wr{};
  ibv_send_wr* ignored = nullptr;
  wr.wr_id = wr_id;
  wr.sg_list = &piece;
  wr.num_sge = 1;
  wr.opcode = opcode;
  return ibv_post_send(qp, &wr, bad == nullptr ? &ignored : bad);
}
inline int post_receive(ibv_qp* qp, ibv_sge piece, ibv_recv_wr** bad = nullptr) {
  ibv_recv_wr wr{};
  ibv_recv_wr* ignored = nullptr;
  wr.wr_id = 2;
  wr.sg_list = &piece;
  wr.num_sge = 1;
  return ibv_post_recv(qp, &wr, bad == nullptr ? &ignored : bad);
}

/// `count` completions, or as many as come in time.
inline std::vector<ibv_wc> poll(ibv_cq* cq, size_t count) {
  std::vector<ibv_wc> all;
  const conformance::Deadline deadline(std::chrono::seconds(10));
  while (all.size() < count && !deadline.has_passed()) {
    ibv_wc wc{};
    if (ibv_poll_cq(cq, 1, &wc) == 1) {
      all.push_back(wc);
    }
  }
  return all;
}

/// The completion of a receive (send) among them.
inline const ibv_wc* of(const std::vector<ibv_wc>& all, uint64_t wr_id) {
  for (const ibv_wc& wc : all) {
    if (wc.wr_id == wr_id) {
      return &wc;
    }
  }
  return nullptr;
}

}  // namespace ringbolt::profiles
