// The sides that use verbs: one completion queue for everything, armed, and a program that sleeps in epoll_wait.

#include <fcntl.h>
#include <fmt/format.h>
#include <infiniband/verbs.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "footprint/loop_device.h"
#include "side.h"

namespace ringbolt::bench {
namespace {

constexpr uint8_t kPort = 1;
constexpr uint8_t kGidIndex = 1;
constexpr uint32_t kSignaledEvery = 16;
constexpr uint32_t kInlineBytes = 64;

void check(int error, const char* call) {
  if (error != 0) {
    throw std::runtime_error(fmt::format("{}: {}", call, std::strerror(error > 0 ? error : errno)));
  }
}
template <class T>
T* made(T* object, const char* call) {
  if (object == nullptr) {
    throw std::runtime_error(fmt::format("{}: {}", call, std::strerror(errno)));
  }
  return object;
}

ibv_context* open_first() {
  ibv_device** const list = made(ibv_get_device_list(nullptr), "ibv_get_device_list");
  ibv_context* const context = list[0] == nullptr ? nullptr : ibv_open_device(list[0]);
  ibv_free_device_list(list);
  return made(context, "ibv_open_device");
}

class VerbsSide final : public Side {
 public:
  VerbsSide(const Shape& shape, int control, bool writes)
      : shape_(shape),
        writes_(writes),
        context_(open_first()),
        pd_(made(ibv_alloc_pd(context_.get()), "ibv_alloc_pd")),
        channel_(made(ibv_create_comp_channel(context_.get()), "ibv_create_comp_channel")),
        cq_(made(ibv_create_cq(context_.get(), static_cast<int>(4 * total()), nullptr, channel_.get(), 0),
                 "ibv_create_cq")),
        memory_(static_cast<std::byte*>(std::aligned_alloc(4096, (memory_bytes() + 4095) / 4096 * 4096)), std::free),
        region_(made(ibv_reg_mr(pd_.get(), memory_.get(), memory_bytes(),
                                IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE),
                     "ibv_reg_mr")),
        places_(all() * receives_of_one()),
        connections_(all()) {
    std::memset(memory_.get(), 1, memory_bytes());
    check(fcntl(channel_->fd, F_SETFL, O_NONBLOCK), "fcntl");
    for (uint32_t i = 0; i < shape_.churn; ++i) {
      connect(0, control);
      connections_[0].qp.reset();
    }
    for (uint32_t i = 0; i < connections_.size(); ++i) {
      connect(i, control);
    }
    if (shape_.churn != 0) {
      drop_flushed();
    }
    check(ibv_req_notify_cq(cq_.get(), 0), "ibv_req_notify_cq");
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    epoll_event wanted{};
    wanted.events = EPOLLIN;
    check(epoll_ctl(epoll_, EPOLL_CTL_ADD, channel_->fd, &wanted), "epoll_ctl");
    char ready = 0;  // the other one has receives posted, too
    write_all(control, &ready, 1);
    read_all(control, &ready, 1);
  }

  ~VerbsSide() override { close(epoll_); }

  void put(uint32_t connection) override {
    Connection& one = touched(connection);
    ibv_send_wr wr{};
    wr.wr_id = UINT32_MAX;
    wr.sg_list = &one.sent;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    constexpr unsigned kSignaled = IBV_SEND_SIGNALED;
    constexpr unsigned kInline = IBV_SEND_INLINE;
    wr.send_flags = (++one.sends % kSignaledEvery == 0 ? kSignaled : 0U) |
                    (shape_.bytes <= kInlineBytes ? kInline : 0U);
    if (writes_) {
      wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
      wr.imm_data = one.sends;
      wr.wr.rdma = {one.remote_address, one.remote_key};
    }
    one.unsent.push_back(wr);
  }

  void flush() override {
    for (const uint32_t connection : touched_) {
      Connection& one = connections_[connection];
      ibv_recv_wr* bad_receive = nullptr;
      if (ibv_recv_wr* const first = chained(one.free_receives)) {  // first: the answer to what is sent needs one
        check(ibv_post_recv(one.qp.get(), first, &bad_receive), "ibv_post_recv");
      }
      ibv_send_wr* bad = nullptr;
      if (ibv_send_wr* const first = chained(one.unsent)) {
        check(ibv_post_send(one.qp.get(), first, &bad), "ibv_post_send");
      }
      one.free_receives.clear();
      one.unsent.clear();
      one.is_touched = false;
    }
    touched_.clear();
  }

  void wait(int limit_ms, const std::function<void(uint32_t)>& take) override {
    if (!shape_.polls && !sleep(limit_ms)) {
      return;
    }
    std::array<ibv_wc, 32> completions;
    int count = 0;
    while ((count = ibv_poll_cq(cq_.get(), static_cast<int>(completions.size()), completions.data())) > 0) {
      for (int i = 0; i < count; ++i) {
        const ibv_wc& wc = completions[static_cast<size_t>(i)];
        if (wc.status != IBV_WC_SUCCESS) {
          throw std::runtime_error(fmt::format("a completion says {}", ibv_wc_status_str(wc.status)));
        }
        if (wc.wr_id != UINT32_MAX) {
          const auto slot = static_cast<uint32_t>(wc.wr_id);
          touched(slot / receives_of_one()).free_receives.push_back(receive_of(slot));
          take(slot / receives_of_one());
        }
      }
      flush();
    }
    check(count, "ibv_poll_cq");
  }

 private:
  /// Until an event has come, which is taken, and the queue armed anew. False: none came.
  bool sleep(int limit_ms) {
    epoll_event event{};
    if (epoll_wait(epoll_, &event, 1, limit_ms) <= 0) {
      return false;
    }
    ibv_cq* cq = nullptr;
    void* cq_context = nullptr;
    if (ibv_get_cq_event(channel_.get(), &cq, &cq_context) == 0) {
      ibv_ack_cq_events(cq, 1);
      check(ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
    }
    return true;
  }
  /// What was posted on connections that are closed by now.
  void drop_flushed() {
    ibv_wc wc{};
    while (ibv_poll_cq(cq_.get(), 1, &wc) > 0) {
    }
  }

  /// What is put on a connection, and the receives of what came, leave with one call each.
  struct Connection {
    QueuePair qp;
    uint32_t sends = 0;
    uint64_t remote_address = 0;
    uint32_t remote_key = 0;
    ibv_sge sent{};
    std::vector<ibv_send_wr> unsent;
    std::vector<ibv_recv_wr> free_receives;
    bool is_touched = false;
  };
  template <class Request>
  static Request* chained(std::vector<Request>& requests) {
    for (size_t i = 1; i < requests.size(); ++i) {
      requests[i - 1].next = &requests[i];
    }
    return requests.empty() ? nullptr : requests.data();
  }
  Connection& touched(uint32_t connection) {
    Connection& one = connections_[connection];
    if (!one.is_touched) {
      one.is_touched = true;
      touched_.push_back(connection);
    }
    return one;
  }
  struct Address {
    uint32_t qpn;
    uint32_t key;
    uint64_t memory;
    ibv_gid gid;
  };

  uint32_t receives_of_one() const { return 2 * shape_.pipeline; }
  uint32_t total() const { return all() * receives_of_one() + 64; }
  uint32_t all() const { return shape_.connections + shape_.idle; }
  /// A place for each receive, then one for each connection's sends: they are all alike.
  size_t memory_bytes() const { return size_t{all()} * (receives_of_one() + 1) * shape_.bytes; }
  std::byte* received(uint32_t slot) const { return memory_.get() + size_t{slot} * shape_.bytes; }
  std::byte* sent(uint32_t connection) const { return received(all() * receives_of_one() + connection); }

  ibv_recv_wr receive_of(uint32_t slot) { return {slot, nullptr, &places_[slot], 1}; }

  void connect(uint32_t connection, int control) {
    Connection& one = connections_[connection];
    ibv_qp_init_attr init{};
    init.send_cq = init.recv_cq = cq_.get();
    init.qp_type = IBV_QPT_RC;
    init.cap = {receives_of_one() + 2 * kSignaledEvery, receives_of_one(), 1, 1, kInlineBytes};
    one.qp.reset(made(ibv_create_qp(pd_.get(), &init), "ibv_create_qp"));
    Address own{one.qp->qp_num, region_->rkey, reinterpret_cast<uint64_t>(received(connection * receives_of_one())), {}};
    check(ibv_query_gid(context_.get(), kPort, kGidIndex, &own.gid), "ibv_query_gid");
    write_all(control, &own, sizeof own);
    Address other{};
    read_all(control, &other, sizeof other);
    one.remote_address = other.memory;
    one.remote_key = other.key;
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = kPort;
    attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    check(ibv_modify_qp(one.qp.get(), &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
          "to INIT");
    one.sent = {reinterpret_cast<uint64_t>(sent(connection)), shape_.bytes, region_->lkey};
    for (uint32_t i = 0; i < receives_of_one(); ++i) {
      const uint32_t slot = connection * receives_of_one() + i;
      places_[slot] = {reinterpret_cast<uint64_t>(received(slot)), shape_.bytes, region_->lkey};
      touched(connection).free_receives.push_back(receive_of(slot));
    }
    flush();
    attr = {};
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = IBV_MTU_4096;
    attr.dest_qp_num = other.qpn;
    attr.max_dest_rd_atomic = 1;
    attr.min_rnr_timer = 12;
    attr.ah_attr.is_global = 1;
    attr.ah_attr.port_num = kPort;
    attr.ah_attr.grh.dgid = other.gid;
    attr.ah_attr.grh.sgid_index = kGidIndex;
    attr.ah_attr.grh.hop_limit = 64;
    check(ibv_modify_qp(one.qp.get(), &attr,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                            IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
          "to RTR");
    attr = {};
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = 14;
    attr.retry_cnt = attr.rnr_retry = 7;
    attr.max_rd_atomic = 1;
    check(ibv_modify_qp(one.qp.get(), &attr,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                            IBV_QP_MAX_QP_RD_ATOMIC),
          "to RTS");
  }

  const Shape shape_;
  const bool writes_;
  const Owned<ibv_context, ibv_close_device> context_;
  const Owned<ibv_pd, ibv_dealloc_pd> pd_;
  const Owned<ibv_comp_channel, ibv_destroy_comp_channel> channel_;
  const CompletionQueue cq_;
  const std::unique_ptr<std::byte, decltype(&std::free)> memory_;
  const Owned<ibv_mr, ibv_dereg_mr> region_;
  std::vector<ibv_sge> places_;  // of the receives, by slot
  std::vector<Connection> connections_;
  std::vector<uint32_t> touched_;
  int epoll_ = -1;
};

}  // namespace

std::unique_ptr<Side> make_verbs_side(const Shape& shape, int control, bool) {
  return std::make_unique<VerbsSide>(shape, control, false);
}
std::unique_ptr<Side> make_verbs_write_side(const Shape& shape, int control, bool) {
  return std::make_unique<VerbsSide>(shape, control, true);
}

}  // namespace ringbolt::bench
