#pragma once

// A device of the test's own process, and queue pairs whose both ends are in it.

#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdlib.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "device/context.h"
#include "device/gids.h"
#include "device/memory.h"
#include "device/port.h"
#include "device/queue_pair.h"

namespace ringbolt::device {

/// A variable of the environment, for as long as it lives.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) { setenv(name, value.c_str(), 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

/// The default device in a runtime folder of its own, opened once, with one protection domain. Not thread-safe.
class DeviceUnderTest {
 public:
  /// `like`: RINGBOLT_LIKE, `faults`: RINGBOLT_FAULTS; empty: neither.
  explicit DeviceUnderTest(const std::string& like = {}, const std::string& faults = {})
      : runtime_("RINGBOLT_RUNTIME_DIR", folder_.path),
        like_("RINGBOLT_LIKE", like),
        faults_("RINGBOLT_FAULTS", faults) {
    if (like.empty()) {
      unsetenv("RINGBOLT_LIKE");
    }
    if (faults.empty()) {
      unsetenv("RINGBOLT_FAULTS");
    }
    port_ = list_ports().front();
    process_ = std::make_shared<Process>(port_->fabric);
    context_ = std::make_unique<Context>(port_, process_);
    pd_ = std::make_unique<ProtectionDomain>(*context_);
  }

  Context& context() { return *context_; }
  Process& process() { return *process_; }
  const Port& port() const { return *port_; }
  ProtectionDomain& pd() { return *pd_; }

  /// The oldest asynchronous event that waits; IBV_EVENT_CLIENT_REREGISTER, which the device never raises, for none.
  ibv_event_type next_event() {
    pollfd poll_one{context_->events().descriptor(), POLLIN, 0};
    ibv_async_event event{};
    event.event_type = IBV_EVENT_CLIENT_REREGISTER;
    if (poll(&poll_one, 1, 0) == 1) {
      context_->events().take(event, [](ibv_async_event&) {});
    }
    return event.event_type;
  }

 private:
  struct Folder {
    std::string path;
    Folder() {
      std::string pattern = (std::filesystem::temp_directory_path() / "rbd-XXXXXX").string();
      path = mkdtemp(pattern.data());
    }
    ~Folder() { std::filesystem::remove_all(path); }
  };

  Folder folder_;
  Variable runtime_;
  Variable like_;
  Variable faults_;
  std::shared_ptr<const Port> port_;
  std::shared_ptr<Process> process_;
  std::unique_ptr<Context> context_;
  std::unique_ptr<ProtectionDomain> pd_;
};

/// Memory of the test's under a key.
class Memory {
 public:
  Memory(ProtectionDomain& pd, size_t length, uint32_t access) : bytes_(length) {
    region_ = *MemoryRegion::create(pd, address(), length, address(), access);
  }
  static constexpr uint32_t kAll =
      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

  std::byte* data() { return bytes_.data(); }
  size_t length() const { return bytes_.size(); }
  uint64_t address() const { return reinterpret_cast<uint64_t>(bytes_.data()); }
  uint32_t key() const { return region_->key(); }
  ibv_sge piece(size_t offset, size_t length) const {
    return {address() + offset, static_cast<uint32_t>(length), key()};
  }
  /// Bytes that depend on their place and on `seed`.
  void fill(uint8_t seed) {
    for (size_t i = 0; i < bytes_.size(); ++i) {
      bytes_[i] = static_cast<std::byte>(i * 31 + seed);
    }
  }

 private:
  std::vector<std::byte> bytes_;
  std::unique_ptr<MemoryRegion> region_;
};

/// One end: a queue pair with a completion queue of its own for sends and one for receives.
class End {
 public:
  struct Depths {
    uint32_t sends = 16;
    uint32_t receives = 16;
    uint32_t pieces = 2;
    uint32_t inline_bytes = 64;
    bool signals_all = true;
    uint32_t cqe = 64;
    CompletionChannel* send_channel = nullptr;  ///< of its completion queues; they must outlive it
    CompletionChannel* receive_channel = nullptr;
  };
  End(DeviceUnderTest& device, ibv_qp_type type) : End(device, type, Depths()) {}
  End(DeviceUnderTest& device, ibv_qp_type type, const Depths& depths) : device_(device) {
    sends_ = *CompletionQueue::create(device.context(), depths.cqe, depths.send_channel);
    receives_ = *CompletionQueue::create(device.context(), depths.cqe, depths.receive_channel);
    ibv_qp_init_attr wanted{};
    wanted.qp_type = type;
    wanted.sq_sig_all = depths.signals_all ? 1 : 0;
    wanted.cap = {depths.sends, depths.receives, depths.pieces, depths.pieces, depths.inline_bytes};
    qp_ = *QueuePair::create(device.pd(), {sends_, receives_, nullptr}, wanted, &handle_);
  }
  ~End() {
    qp_->destroy();
    for (const auto& queue : {sends_, receives_}) {
      device_.process().remove(*queue);
      queue->retire();
    }
  }
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  QueuePair& qp() { return *qp_; }
  CompletionQueue& sends() { return *sends_; }
  CompletionQueue& receives() { return *receives_; }
  uint32_t qpn() const { return qp_->qpn(); }
  ibv_qp_state state() const { return handle_.state; }

  int to_init() {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_INIT;
    attributes.port_num = 1;
    attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    attributes.qkey = kQkey;
    const int last = qp_->type() == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
    return qp_->modify(attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | last);
  }
  /// `peer`: not for UD.
  int to_rtr(uint32_t peer) {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_RTR;
    attributes.path_mtu = IBV_MTU_1024;
    attributes.dest_qp_num = peer;
    attributes.max_dest_rd_atomic = 4;
    attributes.min_rnr_timer = 12;
    attributes.ah_attr.is_global = 1;
    attributes.ah_attr.port_num = 1;
    attributes.ah_attr.grh.dgid = device_.port().known_gids.front();
    int mask = IBV_QP_STATE;
    if (qp_->type() != IBV_QPT_UD) {
      mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    }
    if (qp_->type() == IBV_QPT_RC) {
      mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    }
    return qp_->modify(attributes, mask);
  }
  /// `timeout` and the retries are those of RC.
  int to_rts(uint8_t timeout = 14, uint8_t rnr_retry = 7, uint8_t retries = 1) {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_RTS;
    attributes.timeout = timeout;
    attributes.retry_cnt = retries;
    attributes.rnr_retry = rnr_retry;
    attributes.max_rd_atomic = 4;
    int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
    if (qp_->type() == IBV_QPT_RC) {
      mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    }
    return qp_->modify(attributes, mask);
  }
  int to(ibv_qp_state state) {
    ibv_qp_attr attributes{};
    attributes.qp_state = state;
    return qp_->modify(attributes, IBV_QP_STATE);
  }

  /// 0 or an errno.
  int post(ibv_send_wr wr) {
    ibv_send_wr* bad = nullptr;
    return qp_->post_send(&wr, &bad);
  }
  int send(uint64_t id, ibv_sge piece, unsigned flags = 0) { return post(request(IBV_WR_SEND, id, &piece, flags)); }
  int receive(uint64_t id, ibv_sge piece) {
    ibv_recv_wr wr{id, nullptr, &piece, 1};
    ibv_recv_wr* bad = nullptr;
    return qp_->post_receive(&wr, &bad);
  }
  static ibv_send_wr request(ibv_wr_opcode opcode, uint64_t id, ibv_sge* piece, unsigned flags = 0) {
    ibv_send_wr wr{};
    wr.wr_id = id;
    wr.opcode = opcode;
    wr.sg_list = piece;
    wr.num_sge = piece == nullptr ? 0 : 1;
    wr.send_flags = flags;
    return wr;
  }

  /// A status that the device never gives.
  static constexpr ibv_wc_status kNothing = IBV_WC_FATAL_ERR;
  /// The next completion; its status is kNothing when there is none now.
  static ibv_wc poll(CompletionQueue& queue) {
    ibv_wc wc{};
    wc.status = kNothing;
    EXPECT_GE(queue.poll(1, &wc), 0);
    return wc;
  }
  ibv_wc poll_send() { return poll(*sends_); }
  ibv_wc poll_receive() { return poll(*receives_); }
  /// The next completion, awaited as long as anything in a test may take.
  static ibv_wc await(CompletionQueue& queue) {
    const uint64_t deadline = base::now_ns() + kPatienceNs;
    ibv_wc wc = poll(queue);
    while (wc.status == kNothing && base::now_ns() < deadline) {
      wc = poll(queue);
    }
    return wc;
  }
  ibv_wc await_send() { return await(*sends_); }
  ibv_wc await_receive() { return await(*receives_); }

  static constexpr uint32_t kQkey = 0x1234;
  static constexpr uint64_t kPatienceNs = 20'000'000'000;  ///< what takes that long has failed

 private:
  DeviceUnderTest& device_;
  ibv_qp handle_{};
  std::shared_ptr<CompletionQueue> sends_;
  std::shared_ptr<CompletionQueue> receives_;
  std::shared_ptr<QueuePair> qp_;
};

/// Both up to RTS, to each other.
inline void connect(End& a, End& b) {
  ASSERT_EQ(a.to_init(), 0);
  ASSERT_EQ(b.to_init(), 0);
  ASSERT_EQ(a.to_rtr(b.qpn()), 0);
  ASSERT_EQ(b.to_rtr(a.qpn()), 0);
  ASSERT_EQ(a.to_rts(), 0);
  ASSERT_EQ(b.to_rts(), 0);
}

}  // namespace ringbolt::device
