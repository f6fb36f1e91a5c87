// The least that two ranks of any library over verbs have to do for a call: each sends its input, inline and mostly
// unsignalled, and waits for the other's. No deadline, no credit, no checksum, no lock: a floor for what has them.
#include <array>
#include <cstring>
#include <stdexcept>

#include "collective.h"
#include "serve.h"
#include "verbs_endpoint.h"

namespace ringbolt::bench {
namespace {

constexpr uint32_t kReceives = 256;
constexpr uint32_t kBatch = 16;  // one in so many sends is signalled, and so many receives are posted at once

void check(int error, const char* call) {
  if (error != 0) {
    throw std::runtime_error(fmt::format("{}: {}", call, std::strerror(error)));
  }
}

class VerbsExchange {
 public:
  VerbsExchange(const Options& options, Control& control)
      : endpoint_(Memory::kShared), rank(options.rank), ranks(options.ranks) {
    if (ranks != 2) {
      throw std::runtime_error(fmt::format("{} ranks: two exchange", ranks));
    }
    endpoint_.connect(control, rank, ranks);
    qp_ = rank == 0 ? endpoint_.to_next() : endpoint_.to_previous();
    for (uint32_t i = 0; i < kReceives; i += kBatch) {
      post_receives(i);
    }
  }

  static std::string description() { return "one SEND each way, RC, inline, and nothing else"; }

  void all_reduce(const std::byte* in, std::byte* out, std::size_t bytes, const std::string& type) {
    if (bytes > VerbsEndpoint::kInlineBytes || type != "float32") {
      throw std::runtime_error(
          fmt::format("{} bytes of {}: at most {} of float32", bytes, type, VerbsEndpoint::kInlineBytes));
    }
    const std::byte* const theirs = exchange(in, bytes);
    for (std::size_t at = 0; at < bytes; at += sizeof(float)) {
      float a = 0;
      float b = 0;
      std::memcpy(&a, in + at, sizeof a);
      std::memcpy(&b, theirs + at, sizeof b);
      a += b;
      std::memcpy(out + at, &a, sizeof a);
    }
  }
  void all_gather(const std::byte*, std::byte*, std::size_t) { throw std::runtime_error("all_gather: not here"); }
  void barrier() {
    const std::byte nothing{};
    exchange(&nothing, sizeof nothing);
  }

 private:
  /// What the other rank sent, until kReceives - kBatch calls later.
  const std::byte* exchange(const std::byte* in, std::size_t bytes) {
    ibv_sge sge{reinterpret_cast<uint64_t>(in), static_cast<uint32_t>(bytes), 0};
    ibv_send_wr work{};
    work.sg_list = &sge;
    work.num_sge = 1;
    work.opcode = IBV_WR_SEND;
    const bool is_signalled = ++n_calls_ % kBatch == 0;
    work.send_flags = static_cast<unsigned>(is_signalled ? IBV_SEND_INLINE | IBV_SEND_SIGNALED : IBV_SEND_INLINE);
    ibv_send_wr* bad = nullptr;
    check(ibv_post_send(qp_, &work, &bad), "ibv_post_send");
    const uint64_t place = poll_one(endpoint_.receive_cq());
    if (is_signalled) {
      poll_one(endpoint_.send_cq());
      post_receives(static_cast<uint32_t>(place + 1 - kBatch));
    }
    return slot(place);
  }
  std::byte* slot(uint64_t place) const { return endpoint_.arena().base + place * VerbsEndpoint::kInlineBytes; }
  static uint64_t poll_one(ibv_cq* cq) {
    ibv_wc completion{};
    int n = 0;
    while ((n = ibv_poll_cq(cq, 1, &completion)) == 0) {
    }
    if (n < 0 || completion.status != IBV_WC_SUCCESS) {
      throw std::runtime_error(fmt::format("ibv_poll_cq: {} completions, {}", n, ibv_wc_status_str(completion.status)));
    }
    return completion.wr_id;
  }
  void post_receives(uint32_t first) {
    std::array<ibv_sge, kBatch> sges{};
    std::array<ibv_recv_wr, kBatch> works{};
    for (uint32_t i = 0; i < kBatch; ++i) {
      sges[i] = {reinterpret_cast<uint64_t>(slot(first + i)), VerbsEndpoint::kInlineBytes, endpoint_.lkey()};
      works[i] = {first + i, i + 1 < kBatch ? &works[i + 1] : nullptr, &sges[i], 1};
    }
    ibv_recv_wr* bad = nullptr;
    check(ibv_post_recv(qp_, works.data(), &bad), "ibv_post_recv");
  }

  VerbsEndpoint endpoint_;
  ibv_qp* qp_ = nullptr;
  uint64_t n_calls_ = 0;

 public:
  unsigned rank;
  unsigned ranks;
  Buffers buffers = {};
};

}  // namespace

template <>
std::string run_block(VerbsExchange& channel, const Block& block) {
  return run_collective(channel, channel.buffers, block);
}

}  // namespace ringbolt::bench

int main(int argc, char** argv) { return ringbolt::bench::worker_main<ringbolt::bench::VerbsExchange>(argc, argv); }
