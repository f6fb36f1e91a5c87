// Hot path.
#include "stream/endpoint.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/error.h"

namespace ringbolt::stream {
namespace {

constexpr uint32_t kSends = SendSpace::kDepth + Protocol::kCommandSlots + 8;  // a few fences
// As many as may complete together: the queue can't overrun.
constexpr int kEntries = static_cast<int>(Endpoint::kReceives + kSends);
constexpr int kRxAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;  // nobody reads there but us

// What a request was, in its number: the rest is a slot, or how many writes are done.
constexpr uint64_t kWriteBit = uint64_t{1} << 63U;
constexpr uint64_t kCommandBit = uint64_t{1} << 62U;
constexpr uint64_t kFenceBit = uint64_t{1} << 61U;
constexpr uint64_t kNumberMask = kFenceBit - 1;

[[noreturn]] void over_budget(const char* what, uint64_t bytes, uint64_t left) {
  throw base::Error(ENOBUFS, "reserve memory", fmt::format("{} of {} bytes", what, bytes),
                    fmt::format("the budget of all streams has {} left: raise it, or take smaller buffers", left));
}

}  // namespace

Endpoint::Endpoint(const verbs::ConnectionManager& manager, rdma_cm_id* id, const StreamSettings& settings,
                   MemoryBudget& budget)
    : context_(manager.verbs(), id->verbs),
      pd_(context_),
      commands_(pd_, (kReceives + Protocol::kCommandSlots) * kControlBytes),
      commands_region_(pd_, commands_.bytes()),
      budget_(&budget),
      channel_(context_),
      cq_(context_, kEntries, &channel_) {
  make_buffers(settings, budget);
  make_queue_pair(manager, id);
  write_request_.sg_list = &write_piece_;
  write_request_.num_sge = 1;
  for (uint32_t slot = 0; slot < kReceives; ++slot) {
    if (const int error = give_back(slot)) {
      throw base::Error(error, "ibv_post_recv", fmt::format("{}, receive {} of {}", device(), slot + 1, kReceives));
    }
  }
  if (const int error = repost()) {
    throw base::Error(error, "ibv_post_recv", device());
  }
}

void Endpoint::make_buffers(const StreamSettings& settings, MemoryBudget& budget) {
  const uint64_t bytes = uint64_t{settings.receive_bytes} * settings.receive_buffers;
  // The program's own memory is not of our budget.
  if (settings.receive_memory.empty()) {
    rx_reserved_ = Reservation(budget, bytes);
    if (!rx_reserved_.is_held()) {
      over_budget("receive buffers", bytes, budget.left());
    }
    rx_slab_.emplace(pd_, bytes);
    rx_memory_ = rx_slab_->bytes();
  } else {
    rx_memory_ = settings.receive_memory.first(bytes);
  }
  rx_region_.emplace(pd_, rx_memory_, kRxAccess);
}

void Endpoint::make_queue_pair(const verbs::ConnectionManager& manager, rdma_cm_id* id) {
  ibv_qp_init_attr wanted{};
  wanted.send_cq = wanted.recv_cq = cq_.get();
  wanted.qp_type = IBV_QPT_RC;
  wanted.cap.max_send_wr = kSends;
  wanted.cap.max_recv_wr = kReceives;
  wanted.cap.max_send_sge = wanted.cap.max_recv_sge = 1;
  errno = 0;
  if (manager.calls().create_qp(id, pd_.get(), &wanted) != 0) {
    throw base::Error(errno == 0 ? ENOMEM : errno, "rdma_create_qp",
                      fmt::format("{}, {} sends and {} receives", device(), kSends, kReceives),
                      "are all queue pairs of the device taken?");
  }
  qp_ = std::unique_ptr<rdma_cm_id, DestroyQueuePair>(id, DestroyQueuePair{manager.shared_calls()});
}

base::Result<void> Endpoint::make_tx(uint32_t length) {
  tx_reserved_ = Reservation(*budget_, length);
  if (!tx_reserved_.is_held()) {
    return base::fail(ENOBUFS);
  }
  try {
    tx_memory_.emplace(pd_, length, verbs::Contents::anything);
    // No access but the device's own reading: the peer can't reach what we send from.
    tx_region_.emplace(pd_, tx_memory_->bytes(), 0);
  } catch (const base::Error& error) {
    return base::fail(error.errno_value());
  } catch (const std::bad_alloc&) {
    return base::fail(ENOMEM);
  }
  return {};
}

Finished Endpoint::finished(const ibv_wc& completion) {
  const uint64_t id = completion.wr_id;
  Finished done;
  done.number = id & kNumberMask;
  if ((id & kWriteBit) != 0) {
    done.kind = Finished::Kind::write;
  } else if ((id & kCommandBit) != 0) {
    done.kind = Finished::Kind::command;
  } else if ((id & kFenceBit) != 0) {
    done.kind = Finished::Kind::fence;
  } else {
    done.slot = static_cast<uint32_t>(id);
  }
  return done;
}

std::span<const std::byte> Endpoint::command(uint32_t slot, uint32_t length) const {
  return commands_.bytes().subspan(slot * kControlBytes, std::min<size_t>(length, kControlBytes));
}

int Endpoint::give_back(uint32_t slot) {
  taken_[n_taken_++] = slot;
  return n_taken_ == kRepostAt ? repost() : 0;
}

int Endpoint::repost() {
  if (n_taken_ == 0) {
    return 0;
  }
  std::array<ibv_recv_wr, kRepostAt> requests;
  std::array<ibv_sge, kRepostAt> pieces;
  for (uint32_t i = 0; i < n_taken_; ++i) {
    pieces[i] = commands_region_.piece(size_t{taken_[i]} * kControlBytes, kControlBytes);
    requests[i] = {};
    requests[i].wr_id = taken_[i];
    requests[i].sg_list = &pieces[i];
    requests[i].num_sge = 1;
    requests[i].next = i + 1 < n_taken_ ? &requests[i + 1] : nullptr;
  }
  n_taken_ = 0;
  ibv_recv_wr* bad = nullptr;
  const int returned = ibv_post_recv(qp_->qp, requests.data(), &bad);
  return verbs::error_of(returned, errno);
}

int Endpoint::post(ibv_send_wr& request) const {
  ibv_send_wr* bad = nullptr;
  const int returned = ibv_post_send(qp_->qp, &request, &bad);
  return verbs::error_of(returned, errno);
}

int Endpoint::post_command(const OutgoingCommand& command) {
  const size_t place = (kReceives + command.slot) * kControlBytes;
  std::memcpy(&commands_.bytes()[place], command.bytes.data(), kControlBytes);
  ibv_sge piece = commands_region_.piece(place, kControlBytes);
  ibv_send_wr request{};
  request.wr_id = kCommandBit | command.slot;
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_SIGNALED;
  return post(request);
}

int Endpoint::post_write(const Write& write, const std::byte* data, uint32_t local_key) {
  write_piece_ = {reinterpret_cast<uintptr_t>(data), write.length, local_key};
  ibv_send_wr& request = write_request_;
  request.wr_id = kWriteBit | write.number;
  request.opcode = write.has_immediate ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
  request.send_flags = static_cast<unsigned>(write.is_signaled ? IBV_SEND_SIGNALED : 0);
  request.imm_data = htonl(write.immediate);
  request.wr.rdma.remote_addr = write.remote_address;
  request.wr.rdma.rkey = write.remote_key;
  return post(request);
}

int Endpoint::post_fence(uint64_t writes_before) {
  ibv_send_wr request{};
  request.wr_id = kFenceBit | writes_before;
  // Without a piece: of no bytes, so that neither an address nor a key of the peer is needed.
  request.opcode = IBV_WR_RDMA_WRITE;
  request.send_flags = IBV_SEND_SIGNALED;
  return post(request);
}

void Endpoint::register_memory(std::span<std::byte> memory) { own_.try_emplace(memory.data(), pd_, memory, 0); }

std::optional<uint32_t> Endpoint::key_of(std::span<const std::byte> piece) const {
  auto after = own_.upper_bound(piece.data());
  if (after == own_.begin()) {
    return std::nullopt;
  }
  const verbs::MemoryRegion& region = std::prev(after)->second;
  // Of the last registration that begins at or before the piece.
  const size_t offset = static_cast<size_t>(piece.data() - region.bytes().data());
  // By comparison with what is left: a sum could wrap.
  if (offset > region.bytes().size() || piece.size() > region.bytes().size() - offset) {
    return std::nullopt;
  }
  return region.local_key();
}

bool Endpoint::take_event() {
  ibv_cq* cq = nullptr;
  void* cq_context = nullptr;
  if (context_.calls().get_cq_event(channel_.get(), &cq, &cq_context) != 0) {
    return false;
  }
  // The queue is the only one of the channel. Its destruction waits for each event's acknowledgement
  // (ibv_ack_cq_events(3)).
  context_.calls().ack_cq_events(cq_.get(), 1);
  return true;
}

}  // namespace ringbolt::stream
