#pragma once

#include <arpa/inet.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <vector>

#include "stream/control_message.h"
#include "stream/stream_test_support.h"

namespace ringbolt::stream::test {

/// A client that speaks to a listener below the protocol: it says what it likes. Waits have a limit.
class RawPeer {
 public:
  explicit RawPeer(const World& world)
      : manager_(world.service->manager()), calls_(manager_.calls()), channel_(manager_), id_(manager_, channel_) {
    Address to = addresses_of("127.0.0.1", world.listener->port(), Deadline::now()).front();
    calls_.resolve_addr(id_.get(), nullptr, to.get(), 2000);
    expect(RDMA_CM_EVENT_ADDR_RESOLVED);
    calls_.resolve_route(id_.get(), 2000);
    expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
    context_.emplace(manager_.verbs(), id_->verbs);
    pd_.emplace(*context_);
    cq_.emplace(*context_, 256);
    memory_.resize(65536);
    region_.emplace(*pd_, memory_, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    ibv_qp_init_attr wanted{};
    wanted.send_cq = wanted.recv_cq = cq_->get();
    wanted.qp_type = IBV_QPT_RC;
    wanted.cap = {128, 64, 1, 1, 0};
    if (calls_.create_qp(id_.get(), pd_->get(), &wanted) != 0) {
      throw std::runtime_error("no queue pair");
    }
    for (uint64_t i = 0; i < 64; ++i) {
      post_receive(i);
    }
    rdma_conn_param param{};
    param.responder_resources = param.initiator_depth = 1;
    param.retry_count = param.rnr_retry_count = 7;
    calls_.connect(id_.get(), &param);
  }
  ~RawPeer() { calls_.destroy_qp(id_.get()); }
  RawPeer(const RawPeer&) = delete;
  RawPeer& operator=(const RawPeer&) = delete;

  void await_established() { expect(RDMA_CM_EVENT_ESTABLISHED); }
  /// The next command of the listener's side, by polling.
  ControlMessage next_command() {
    const ibv_wc completion = next_receive();
    const auto message = ControlMessage::parse(std::span(memory_).subspan(completion.wr_id * 64, completion.byte_len));
    if (!message) {
      throw std::runtime_error("no command");
    }
    return *message;
  }
  ibv_wc next_receive() {
    const uint64_t until = base::now_ns() + limit_ms() * 1'000'000;
    while (base::now_ns() < until) {
      ibv_wc completion{};
      const auto taken = cq_->poll({&completion, 1});
      if (taken && *taken == 1 && completion.status == IBV_WC_SUCCESS && (completion.opcode & IBV_WC_RECV) != 0) {
        return completion;
      }
    }
    throw std::runtime_error("nothing came");
  }

  void send(std::span<const std::byte> bytes) {
    std::copy(bytes.begin(), bytes.end(), memory_.begin() + kSendAt);
    ibv_sge piece = region_->piece(kSendAt, bytes.size());
    post(IBV_WR_SEND, piece, 0, 0, 0);
  }
  void announce(uint64_t address, uint32_t length) {
    send(ControlMessage{
        .opcode = Opcode::register_xfer_memory, .address = address, .length = length, .key = region_->remote_key()}
             .emit());
  }
  /// Of `length` bytes to the peer's memory, with that immediate, or without one.
  void write(const ControlMessage& where, uint32_t offset, std::span<const std::byte> bytes,
             std::optional<uint32_t> immediate) {
    std::copy(bytes.begin(), bytes.end(), memory_.begin() + kSendAt);
    ibv_sge piece = region_->piece(kSendAt, bytes.size());
    post(immediate ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE, piece, where.address + offset, where.key,
         immediate.value_or(0));
  }
  /// Whether the connection is told to be over.
  bool is_ended() {
    // It is told late to who has not read what came before.
    std::array<ibv_wc, 16> ignored;
    pollfd readable{channel_.fd(), POLLIN, 0};
    const uint64_t until = base::now_ns() + limit_ms() * 1'000'000;
    while (base::now_ns() < until && ::poll(&readable, 1, 1) == 0) {
      static_cast<void>(cq_->poll(ignored));
    }
    return next_event() == RDMA_CM_EVENT_DISCONNECTED;
  }
  uint64_t address() const { return reinterpret_cast<uintptr_t>(memory_.data()) + 32768; }
  std::span<std::byte> memory() { return std::span(memory_).subspan(32768); }

 private:
  static constexpr size_t kSendAt = 16384;

  rdma_cm_event_type next_event() {
    pollfd readable{channel_.fd(), POLLIN, 0};
    ::poll(&readable, 1, static_cast<int>(limit_ms()));
    const auto event = channel_.next();
    if (event == nullptr) {
      throw std::runtime_error("no event of the connection manager");
    }
    return event->event;
  }
  void expect(rdma_cm_event_type wanted) {
    if (const auto event = next_event(); event != wanted) {
      throw std::runtime_error(calls_.event_str(event));
    }
  }
  void post_receive(uint64_t slot) {
    ibv_sge piece = region_->piece(slot * 64, 64);
    ibv_recv_wr request{};
    request.wr_id = slot;
    request.sg_list = &piece;
    request.num_sge = 1;
    ibv_recv_wr* bad = nullptr;
    ibv_post_recv(id_->qp, &request, &bad);
  }
  void post(ibv_wr_opcode opcode, ibv_sge& piece, uint64_t address, uint32_t key, uint32_t immediate) {
    ibv_send_wr request{};
    request.sg_list = &piece;
    request.num_sge = 1;
    request.opcode = opcode;
    request.send_flags = IBV_SEND_SIGNALED;
    request.imm_data = htonl(immediate);
    request.wr.rdma.remote_addr = address;
    request.wr.rdma.rkey = key;
    ibv_send_wr* bad = nullptr;
    if (ibv_post_send(id_->qp, &request, &bad) != 0) {
      throw std::runtime_error("the request was not taken");
    }
  }

  const verbs::ConnectionManager manager_;
  const verbs::CmCalls& calls_;
  verbs::EventChannel channel_;
  verbs::CmIdentifier id_;
  std::optional<verbs::Context> context_;
  std::optional<verbs::ProtectionDomain> pd_;
  std::optional<verbs::CompletionQueue> cq_;
  std::vector<std::byte> memory_;
  std::optional<verbs::MemoryRegion> region_;
};

}  // namespace ringbolt::stream::test
