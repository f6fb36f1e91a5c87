// Hot path.
#pragma once

#include <infiniband/verbs.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

namespace ringbolt::device {

/// The completions of a queue that nobody has polled, in their order. They are numbered from 1 as they come; those up
/// to taken() are not here any more. Under the lock of the queue, except where said.
class CompletionRing {
 public:
  /// `capacity`: at least 1. Throws std::bad_alloc.
  explicit CompletionRing(uint32_t capacity) : entries_(capacity), capacity_(capacity) {}

  // Thread-safe, without locks.
  uint32_t capacity() const { return capacity_.load(std::memory_order_relaxed); }
  /// What it holds and so many sends that are to complete are more than it has room for. A send that the caller has
  /// already seen done is counted among what is held: pairs with commit().
  /// Any thread. `unfinished_sends`: what the caller has counted before the call.
  bool may_overflow_with(uint32_t unfinished_sends) const {
    std::atomic_thread_fence(std::memory_order_acquire);
    return held_.load(std::memory_order_relaxed) + unfinished_sends > capacity();
  }

  uint32_t count() const { return count_; }
  bool is_empty() const { return count_ == 0; }
  bool is_full() const { return count_ == capacity(); }
  /// The number of the last one that came.
  uint64_t committed() const { return committed_; }
  /// So many were polled, or forgotten.
  uint64_t taken() const { return committed_ - count_; }
  /// The number of the last solicited or failed one, or of a later one.
  uint64_t last_solicited() const { return last_solicited_; }

  /// Where the next one is to be written. When it is full, a place that nobody reads.
  // The reference is good until the next call of anything here.
  ibv_wc& next() { return is_full() ? excess_ : entries_[place(count_)]; }
  /// It is written. Not when it is full.
  void commit(bool is_solicited) {
    set_count(count_ + 1);
    std::atomic_thread_fence(std::memory_order_release);  // before the send counts as done: see may_overflow_with()
    ++committed_;
    if (is_solicited) {
      last_solicited_ = committed_;
    }
  }
  /// One too many. True: the first one, which is told; the queue has come to its end.
  bool note_overflow() { return !std::exchange(has_overflowed_, true); }
  bool has_overflowed() const { return has_overflowed_; }

  /// The oldest ones, up to `most`, which may be negative: their number.
  int take(int most, ibv_wc* wc) {
    const uint32_t taken = std::min(count_, most > 0 ? static_cast<uint32_t>(most) : 0U);
    for (uint32_t i = 0; i < taken; ++i) {
      wc[i] = entries_[head_];
      head_ = head_ + 1 == capacity() ? 0 : head_ + 1;
    }
    set_count(count_ - taken);
    return static_cast<int>(taken);
  }

  /// `capacity`: not 0, nor less than it holds. Throws std::bad_alloc, and nothing has changed.
  void resize(uint32_t capacity);
  /// Drops those of a queue pair.
  void forget(uint32_t qpn);
  bool holds_success_of(uint32_t qpn) const;

 private:
  /// Of the one behind `age` older ones.
  uint32_t place(uint32_t age) const {
    const uint32_t at = head_ + age;
    return at >= capacity() ? at - capacity() : at;
  }
  void set_count(uint32_t count) {
    count_ = count;
    held_.store(count, std::memory_order_relaxed);
  }

  std::vector<ibv_wc> entries_;
  std::atomic<uint32_t> capacity_;  // of `entries_`, for those who look without the lock
  uint32_t head_ = 0;               // where the oldest one lies
  uint32_t count_ = 0;
  std::atomic<uint32_t> held_{0};  // the same, for those who look without the lock
  uint64_t committed_ = 0;
  uint64_t last_solicited_ = 0;
  bool has_overflowed_ = false;
  ibv_wc excess_{};  // where a completion goes that finds no room
};

inline void CompletionRing::resize(uint32_t capacity) {
  std::vector<ibv_wc> entries(capacity);
  for (uint32_t i = 0; i < count_; ++i) {
    entries[i] = entries_[place(i)];
  }
  entries_ = std::move(entries);
  capacity_.store(capacity, std::memory_order_relaxed);
  head_ = 0;
}

inline void CompletionRing::forget(uint32_t qpn) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < count_; ++i) {
    const ibv_wc& wc = entries_[place(i)];
    if (wc.qp_num != qpn) {
      entries_[place(kept++)] = wc;
    }
  }
  // Those that stay have later numbers from here on. Which of them was solicited is not known any more: an event too
  // many costs the program a look, one too few its sleep.
  if (kept != count_ && kept != 0 && last_solicited_ > taken()) {
    last_solicited_ = committed_;
  }
  set_count(kept);
}

inline bool CompletionRing::holds_success_of(uint32_t qpn) const {
  for (uint32_t i = 0; i < count_; ++i) {
    const ibv_wc& wc = entries_[place(i)];
    if (wc.qp_num == qpn && wc.status == IBV_WC_SUCCESS) {
      return true;
    }
  }
  return false;
}

}  // namespace ringbolt::device
