// What a verbs device owes for one small one-sided request, and nothing else: the floor under P8 to P10 of
// docs/performance.md. Both ends on one core: no cache line moves.
#include <benchmark/benchmark.h>
#include <infiniband/verbs.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>

#include "base/adaptive_mutex.h"
#include "base/lock_guard.h"
#include "link/lane_producer.h"
#include "link/region_table.h"

namespace ringbolt::bench {
namespace {

constexpr uint32_t kSlots = 128;
constexpr uint32_t kDomain = 1;
constexpr unsigned kAll = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

/// A send queue and a completion queue without anything that could be spared: every call may come from any thread, a key
/// is checked at each end, the owner of the memory can wait for the access, the completion names the request.
class Contract {
 public:
  Contract() : lane_memory_(std::make_unique<link::LaneMemory>()), lane_(*lane_memory_) {
    link::Region region;
    region.first = reinterpret_cast<uint64_t>(words_.data());
    region.host_first = region.first;
    region.length = sizeof words_;
    region.pd_key = kDomain;
    region.access = kAll;
    if (const auto made = table_.create(); made) {
      key_ = table_.add(region).value_or(0);
    }
  }
  bool is_made() const { return key_ != 0; }

  int post(ibv_send_wr& wr) {
    const base::LockGuard guard(send_lock_);
    Entry& entry = entries_[tail_ % kSlots];
    link::RegionTableView::Place own;
    link::RegionTableView::Place target;
    const bool is_write = wr.opcode == IBV_WR_RDMA_WRITE;
    const bool is_atomic = wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    const uint64_t address = is_atomic ? wr.wr.atomic.remote_addr : wr.wr.rdma.remote_addr;
    const uint32_t key = is_atomic ? wr.wr.atomic.rkey : wr.wr.rdma.rkey;
    const unsigned remote = is_write ? IBV_ACCESS_REMOTE_WRITE : is_atomic ? IBV_ACCESS_REMOTE_ATOMIC : IBV_ACCESS_REMOTE_READ;
    const ibv_sge& piece = wr.sg_list[0];
    if (tail_ - done_ == kSlots || !locate(piece.lkey, is_write ? 0 : IBV_ACCESS_LOCAL_WRITE, piece.addr, own)) {
      return EINVAL;
    }
    lane_.announce_access(key);
    if (!locate(key, remote, address, target)) {
      return EINVAL;
    }
    auto* const here = reinterpret_cast<uint64_t*>(own.host);
    auto* const there = reinterpret_cast<uint64_t*>(target.host);
    if (is_atomic) {
      *here = std::atomic_ref<uint64_t>(*there).fetch_add(wr.wr.atomic.compare_add);
    } else {
      std::memcpy(is_write ? there : here, is_write ? here : there, sizeof(uint64_t));
    }
    lane_.end_access();
    entry = {wr.wr_id, piece.length, is_write ? IBV_WC_RDMA_WRITE : is_atomic ? IBV_WC_FETCH_ADD : IBV_WC_RDMA_READ};
    ++tail_;
    return 0;
  }
  int poll(ibv_wc& wc) {
    const base::LockGuard queue_guard(queue_lock_);
    const base::LockGuard guard(send_lock_);
    if (done_ == tail_) {
      return 0;
    }
    const Entry& entry = entries_[done_++ % kSlots];
    wc = {};
    wc.wr_id = entry.wr_id;
    wc.byte_len = entry.length;
    wc.opcode = entry.opcode;
    wc.qp_num = 1;
    return 1;
  }
  ibv_send_wr request(ibv_wr_opcode opcode, ibv_sge& piece) const {
    piece = {reinterpret_cast<uint64_t>(words_.data()), sizeof(uint64_t), key_};
    ibv_send_wr wr{};
    wr.sg_list = &piece;
    wr.num_sge = 1;
    wr.opcode = opcode;
    wr.send_flags = IBV_SEND_SIGNALED;
    const auto target = reinterpret_cast<uint64_t>(&words_.back());
    if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
      wr.wr.atomic = {target, 1, 0, key_};
    } else {
      wr.wr.rdma = {target, key_};
    }
    return wr;
  }

 private:
  struct Entry {
    uint64_t wr_id = 0;
    uint32_t length = 0;
    ibv_wc_opcode opcode = IBV_WC_SEND;
  };
  bool locate(uint32_t key, unsigned access, uint64_t address, link::RegionTableView::Place& place) const {
    return table_.locate(key, kDomain, link::kAnyQueuePair, access, address, sizeof(uint64_t), place);
  }

  base::AdaptiveMutex send_lock_;
  base::AdaptiveMutex queue_lock_;
  std::unique_ptr<link::LaneMemory> lane_memory_;
  link::LaneProducer lane_;
  link::RegionTable table_;
  uint32_t key_ = 0;
  uint32_t tail_ = 0;
  uint32_t done_ = 0;
  std::array<Entry, kSlots> entries_{};
  std::array<uint64_t, 64> words_{};
};

void one_sided_contract(benchmark::State& state, ibv_wr_opcode opcode) {
  Contract contract;
  if (!contract.is_made()) {
    state.SkipWithError("no memory for a region table");
    return;
  }
  ibv_sge piece{};
  ibv_send_wr wr = contract.request(opcode, piece);
  for (auto _ : state) {
    benchmark::DoNotOptimize(wr);
    ibv_wc wc;
    if (contract.post(wr) != 0 || contract.poll(wc) != 1) {
      state.SkipWithError("a request was refused");
      break;
    }
    benchmark::DoNotOptimize(wc);
  }
}
BENCHMARK_CAPTURE(one_sided_contract, write, IBV_WR_RDMA_WRITE);
BENCHMARK_CAPTURE(one_sided_contract, read, IBV_WR_RDMA_READ);
BENCHMARK_CAPTURE(one_sided_contract, fetch_add, IBV_WR_ATOMIC_FETCH_AND_ADD);

}  // namespace
}  // namespace ringbolt::bench
