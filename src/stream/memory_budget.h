#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace ringbolt::stream {

/// Bytes that the buffers of all streams may take together, so that peers can't ask for more than there is. Outlives
/// its reservations. Thread-safe.
class MemoryBudget {
 public:
  explicit MemoryBudget(uint64_t bytes) : left_(bytes) {}

  /// All of it or nothing. Bounded by other threads' success.
  bool take(uint64_t bytes) {
    uint64_t left = left_.load(std::memory_order_relaxed);
    while (left >= bytes) {
      if (left_.compare_exchange_weak(left, left - bytes, std::memory_order_relaxed)) {
        return true;
      }
    }
    return false;
  }
  void give_back(uint64_t bytes) { left_.fetch_add(bytes, std::memory_order_relaxed); }
  uint64_t left() const { return left_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> left_;  // a count alone: nothing else hangs on its order
};

/// A part of a budget, given back when this ends. Move-only. Not thread-safe.
class Reservation {
 public:
  Reservation() = default;
  /// Empty if there is not so much left: see is_held().
  Reservation(MemoryBudget& budget, uint64_t bytes) : budget_(budget.take(bytes) ? &budget : nullptr), bytes_(bytes) {}
  Reservation(Reservation&& other) noexcept : budget_(std::exchange(other.budget_, nullptr)), bytes_(other.bytes_) {}
  Reservation& operator=(Reservation&& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Reservation() {
    if (budget_ != nullptr) {
      budget_->give_back(bytes_);
    }
  }
  bool is_held() const { return budget_ != nullptr; }

 private:
  MemoryBudget* budget_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace ringbolt::stream
