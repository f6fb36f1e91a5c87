#include "rsocket/endpoint.h"

#include <fcntl.h>

#include <array>
#include <cstring>

#include <fmt/format.h>

#include "rsocket/credits.h"
#include "rsocket/target_table.h"

namespace ringbolt::rsocket {
namespace {

constexpr const char* kName = "rsocket";
constexpr uint32_t kControlBytes = 16;  ///< a target, the longest control message

[[noreturn]] void refuse(const char* call) { throw base::Error(errno == 0 ? EIO : errno, call, kName); }

}  // namespace

Endpoint::Endpoint(rdma_cm_id* id, Settings& settings) : id_(id), staging_bytes_(settings.send_bytes) {
  ibv_device_attr limits{};
  if (ibv_query_device(id->verbs, &limits) != 0) {
    refuse("ibv_query_device");
  }
  // Both queues complete to one completion queue.
  const auto deepest = std::min(static_cast<uint32_t>(limits.max_qp_wr), static_cast<uint32_t>(limits.max_cqe) / 2);
  if (deepest <= kSpareReceives) {  // nothing would be left to receive data with
    throw base::Error(
        ENOMEM, "making its queues", kName,
        fmt::format("its device has max_qp_wr {} and max_cqe {}, and a stream takes more than {} requests and "
                    "twice as many entries: use one with more",
                    limits.max_qp_wr, limits.max_cqe, kSpareReceives));
  }
  settings.send_depth = std::min(settings.send_depth, deepest);
  settings.receive_depth = std::min(settings.receive_depth, deepest - kSpareReceives);
  channel_.reset(ibv_create_comp_channel(id->verbs));
  if (channel_ == nullptr || ::fcntl(channel_->fd, F_SETFL, O_NONBLOCK) != 0) {
    refuse("ibv_create_comp_channel");
  }
  const auto entries = static_cast<int>(settings.send_depth + settings.receive_depth + kSpareReceives);
  cq_.reset(ibv_create_cq(id->verbs, entries, nullptr, channel_.get(), 0));
  if (cq_ == nullptr) {
    refuse("ibv_create_cq");
  }
  make_queue_pair(settings);
  try {
    const uint32_t control_bytes = SendSlots::kControl * kControlBytes;
    constexpr int kRemote = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    staging_ = {id->pd, settings.send_bytes + control_bytes, IBV_ACCESS_LOCAL_WRITE, "rsocket's send buffer"};
    ring_ = {id->pd, settings.receive_bytes, kRemote, "rsocket's receive ring"};
    table_ = {id->pd, table_bytes(settings.iomap_entries), kRemote, "rsocket's table of targets"};
    const int error = post_receives(settings.receive_depth + kSpareReceives);
    if (error != 0) {
      throw base::Error(error, "ibv_post_recv", kName);
    }
  } catch (...) {
    // First: nothing writes to memory or queue any more. Its events are acknowledged before the queue goes.
    rdma_destroy_qp(id_);
    throw;
  }
}

Endpoint::~Endpoint() {
  rdma_destroy_qp(id_);
  take_events();
  ibv_ack_cq_events(cq_.get(), unacknowledged_);
}

void Endpoint::make_queue_pair(Settings& settings) {
  ibv_qp_init_attr wanted{};
  wanted.send_cq = cq_.get();
  wanted.recv_cq = cq_.get();
  wanted.qp_type = IBV_QPT_RC;
  wanted.sq_sig_all = 1;
  wanted.cap.max_send_wr = settings.send_depth;
  wanted.cap.max_recv_wr = settings.receive_depth + kSpareReceives;
  wanted.cap.max_send_sge = 1;
  wanted.cap.max_recv_sge = 1;
  wanted.cap.max_inline_data = settings.inline_bytes;
  if (rdma_create_qp(id_, nullptr, &wanted) != 0) {
    // A device that has less inline room than asked for refuses; none is always possible.
    wanted.cap.max_inline_data = 0;
    if (rdma_create_qp(id_, nullptr, &wanted) != 0) {
      refuse("rdma_create_qp");
    }
  }
  settings.inline_bytes = wanted.cap.max_inline_data;
}

std::byte* Endpoint::control_place(uint32_t number) const {
  return staging_.data() + staging_bytes_ + (number % SendSlots::kControl) * kControlBytes;
}

int Endpoint::post_receives(uint32_t count) {
  constexpr uint32_t kAtOnce = 16;
  std::array<ibv_recv_wr, kAtOnce> requests{};
  for (uint32_t i = 0; i < kAtOnce; ++i) {
    requests[i].next = i + 1 < kAtOnce ? &requests[i + 1] : nullptr;
  }
  while (count > 0) {
    const uint32_t now = std::min(count, kAtOnce);
    requests[now - 1].next = nullptr;
    ibv_recv_wr* bad = nullptr;
    const int error = ibv_post_recv(id_->qp, requests.data(), &bad);
    if (error != 0) {
      return error;
    }
    count -= now;
  }
  return 0;
}

int Endpoint::arm() { return ibv_req_notify_cq(cq_.get(), 0); }

bool Endpoint::take_events() {
  bool any = false;
  constexpr unsigned kAcknowledgeAt = 64;  // acknowledging takes a lock, so it is done for many
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  while (ibv_get_cq_event(channel_.get(), &cq, &context) == 0) {
    any = true;
    if (++unacknowledged_ >= kAcknowledgeAt) {
      ibv_ack_cq_events(cq_.get(), std::exchange(unacknowledged_, 0U));
    }
  }
  return any;
}

}  // namespace ringbolt::rsocket
