#include "ends.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "shareable_memory.h"

namespace ringbolt::bench {
namespace {

constexpr uint32_t kBytesOfOperation = 8;
/// Where an operation's own bytes lie, those that it reads or writes at the peer, and those that it is received in.
constexpr size_t kFarOffset = 4096;
constexpr size_t kReceiveOffset = 8192;
/// Beyond that something is wrong: both ends are here.
constexpr uint64_t kMostPolls = 100'000'000;

std::shared_ptr<std::byte> make_memory(Ends::Memory kind, ibv_pd& pd) {
  if (kind == Ends::Memory::shareable) {
    return shareable_memory(pd, Ends::kBytes);
  }
  return {static_cast<std::byte*>(std::aligned_alloc(4096, Ends::kBytes)), std::free};
}

ibv_mr* register_all(ibv_pd& pd, std::byte* memory) {
  ibv_mr* region =
      ibv_reg_mr(&pd, memory, Ends::kBytes,
                 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
  if (region == nullptr) {
    throw std::runtime_error(fmt::format("ibv_reg_mr: {}", std::strerror(errno)));
  }
  return region;
}

}  // namespace

void End::prepare(const ibv_send_wr& send, const ibv_sge& piece) {
  for (size_t i = 0; i < sends_.size(); ++i) {
    send_pieces_[i] = piece;
    sends_[i] = send;
    sends_[i].sg_list = &send_pieces_[i];
    sends_[i].num_sge = 1;
    sends_[i].next = i + 1 < sends_.size() ? &sends_[i + 1] : nullptr;
  }
  sends_.back().send_flags |= IBV_SEND_SIGNALED;
}

void End::prepare_receives(const ibv_sge& piece) {
  for (size_t i = 0; i < receives_.size(); ++i) {
    receive_pieces_[i] = piece;
    receives_[i] = {};
    receives_[i].sg_list = &receive_pieces_[i];
    receives_[i].num_sge = 1;
    receives_[i].next = i + 1 < receives_.size() ? &receives_[i + 1] : nullptr;
  }
}

void End::take(int count) {
  for (uint64_t polls = 1;; ++polls) {
    const int found = ibv_poll_cq(cq_.get(), count, completions_.data());
    for (int i = 0; i < found; ++i) {
      if (completions_[static_cast<size_t>(i)].status != IBV_WC_SUCCESS) [[unlikely]] {
        throw std::runtime_error(ibv_wc_status_str(completions_[static_cast<size_t>(i)].status));
      }
    }
    count -= found;
    if (count == 0) {
      polls_ += polls;
      return;
    }
    if (found < 0 || polls == kMostPolls) [[unlikely]] {
      throw std::runtime_error(fmt::format("ibv_poll_cq: {} completions are missing after {} polls", count, polls));
    }
  }
}

void End::fail(const char* call, int error) {
  throw std::runtime_error(fmt::format("{}: {}", call, std::strerror(error)));
}

Ends::Ends(Memory memory, uint8_t gid_index)
    : device_(gid_index),
      memory_(make_memory(memory, *device_.pd())),
      region_(register_all(*device_.pd(), memory_.get())),
      near(device_, kInlineBytes),
      far(device_, kInlineBytes) {
  std::memset(memory_.get(), 1, kBytes);
  device_.connect(near.qp(), far.qp());
}

void Ends::prepare(ibv_wr_opcode opcode, unsigned flags) {
  const auto address = reinterpret_cast<uint64_t>(memory_.get());
  ibv_send_wr send{};
  send.opcode = opcode;
  send.send_flags = flags;
  if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    send.wr.atomic.remote_addr = address + kFarOffset;
    send.wr.atomic.rkey = region_->rkey;
    send.wr.atomic.compare_add = 1;
  } else {
    send.wr.rdma.remote_addr = address + kFarOffset;
    send.wr.rdma.rkey = region_->rkey;
  }
  for (End* end : {&near, &far}) {
    end->prepare(send, {address, kBytesOfOperation, region_->lkey});
    end->prepare_receives({address + kReceiveOffset, kBytesOfOperation, region_->lkey});
  }
}

}  // namespace ringbolt::bench
