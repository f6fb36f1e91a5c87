#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include "footprint/loop_device.h"

namespace ringbolt::bench {

/// Most work requests of a list.
constexpr int kListLength = 32;

/// One of two connected queue pairs, with a completion queue of its own. The work requests are made once: what a
/// program does per operation is to post and to poll. Not thread-safe.
class End {
 public:
  End(const LoopDevice& device, uint32_t inline_bytes)
      : cq_(device.make_completion_queue()), qp_(device.make_queue_pair(*cq_, false, inline_bytes)) {}

  ibv_qp& qp() const { return *qp_; }
  ibv_cq& cq() const { return *cq_; }

  /// What all sends are from here on; lists have their last one signaled.
  void prepare(const ibv_send_wr& send, const ibv_sge& piece);
  void prepare_receives(const ibv_sge& piece);

  // Throw std::runtime_error where the call fails.
  void post_send() { post(&sends_[kListLength - 1]); }
  void post_send_list() { post(&sends_[0]); }
  void post_receive() { post(&receives_[kListLength - 1]); }
  void post_receive_list() { post(&receives_[0]); }
  /// Polls until so many completions have come, all of them good.
  void take(int count);
  /// The number of polls that take() has made since the last call.
  uint64_t polls() { return std::exchange(polls_, 0); }

 private:
  void post(ibv_send_wr* list) {
    ibv_send_wr* bad = nullptr;
    if (const int error = ibv_post_send(qp_.get(), list, &bad)) [[unlikely]] {
      fail("ibv_post_send", error);
    }
  }
  void post(ibv_recv_wr* list) {
    ibv_recv_wr* bad = nullptr;
    if (const int error = ibv_post_recv(qp_.get(), list, &bad)) [[unlikely]] {
      fail("ibv_post_recv", error);
    }
  }
  [[noreturn]] static void fail(const char* call, int error);

  CompletionQueue cq_;
  QueuePair qp_;
  std::array<ibv_sge, kListLength> send_pieces_{};
  std::array<ibv_send_wr, kListLength> sends_{};
  std::array<ibv_sge, kListLength> receive_pieces_{};
  std::array<ibv_recv_wr, kListLength> receives_{};
  std::array<ibv_wc, kListLength> completions_{};
  uint64_t polls_ = 0;
};

/// Both ends of a connection in one process, played by one thread in turns: whoever polls finds what the other has
/// posted, so that a count does not depend on how long a message takes. Throws std::runtime_error. Not thread-safe.
class Ends {
 public:
  static constexpr uint32_t kInlineBytes = 64;
  static constexpr size_t kBytes = 64 << 10;
  enum class Memory : uint8_t { shareable, from_malloc };

  /// Queue pairs find each other by the GID of `gid_index`.
  explicit Ends(Memory memory = Memory::shareable, uint8_t gid_index = 1);

  /// Prepares the near end for `opcode` of 8 bytes, and both for receives of as many.
  void prepare(ibv_wr_opcode opcode, unsigned flags = 0);
  const LoopDevice& device() const { return device_; }

 private:
  LoopDevice device_;
  std::shared_ptr<std::byte> memory_;
  Owned<ibv_mr, ibv_dereg_mr> region_;

 public:
  End near;
  End far;
};

}  // namespace ringbolt::bench
