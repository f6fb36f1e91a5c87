#pragma once

// Hot path: no allocation, lock, system call, exception or logging per work request.

#include <infiniband/verbs.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace ringbolt::device {

/// Posted receives, first in, first out. Not thread-safe.
/// Owns copies of the pieces; all memory is taken when it is made or resized.
class ReceiveRing {
 public:
  struct Receive {
    uint64_t wr_id = 0;
    std::span<const ibv_sge> pieces;
  };

  /// Throws std::bad_alloc.
  /// `depth`: receives, 1 or more. `max_sge`: pieces of each.
  ReceiveRing(uint32_t depth, uint32_t max_sge)
      : depth_(depth), max_sge_(max_sge), heads_(depth), pieces_(size_t{depth} * max_sge) {}

  uint32_t depth() const { return depth_; }
  uint32_t max_sge() const { return max_sge_; }
  uint32_t count() const { return count_; }
  bool is_empty() const { return count_ == 0; }

  /// 0, ENOMEM when the ring is full, EINVAL for too many pieces.
  int push(const ibv_recv_wr& wr) {
    if (wr.num_sge < 0 || static_cast<uint32_t>(wr.num_sge) > max_sge_) {
      return EINVAL;
    }
    if (count_ == depth_) {
      return ENOMEM;
    }
    uint32_t at = first_ + count_;
    at = at >= depth_ ? at - depth_ : at;
    const auto pieces = static_cast<uint32_t>(wr.num_sge);
    heads_[at] = {wr.wr_id, pieces};
    std::copy_n(wr.sg_list, pieces, pieces_.begin() + static_cast<ptrdiff_t>(size_t{at} * max_sge_));
    ++count_;
    return 0;
  }
  /// The oldest; it stays valid until as many were pushed as the ring is deep.
  /// There is one. resize() and clear() end it, too.
  Receive front() const {
    return {heads_[first_].wr_id, {pieces_.data() + size_t{first_} * max_sge_, heads_[first_].pieces}};
  }
  /// There is one.
  void pop() {
    first_ = first_ + 1 == depth_ ? 0 : first_ + 1;
    --count_;
  }
  void clear() { first_ = count_ = 0; }
  /// EINVAL when more are posted than the new depth holds.
  /// Throws std::bad_alloc; either way nothing has changed then.
  int resize(uint32_t depth) {
    if (depth < count_) {
      return EINVAL;
    }
    ReceiveRing grown(depth, max_sge_);
    for (; count_ > 0; pop()) {
      const Receive receive = front();
      ibv_recv_wr wr{};
      wr.wr_id = receive.wr_id;
      wr.sg_list = const_cast<ibv_sge*>(receive.pieces.data());
      wr.num_sge = static_cast<int>(receive.pieces.size());
      grown.push(wr);
    }
    *this = std::move(grown);
    return 0;
  }

 private:
  struct Head {
    uint64_t wr_id;
    uint32_t pieces;
  };

  uint32_t depth_;
  uint32_t max_sge_;
  uint32_t first_ = 0;
  uint32_t count_ = 0;
  std::vector<Head> heads_;
  std::vector<ibv_sge> pieces_;
};

}  // namespace ringbolt::device
