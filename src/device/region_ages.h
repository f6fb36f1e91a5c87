#pragma once

#include <cstdint>
#include <unordered_map>

#include "base/adaptive_mutex.h"

namespace ringbolt::device {

/// In which order regions were made: for profiles whose queue pairs know only those that there were at their RTR.
/// Thread-safe.
/// Its lock is a leaf. add() throws std::bad_alloc, and is called for profiles that ask for it alone.
class RegionAges {
 public:
  void add(uint32_t key) {
    const base::LockGuard guard(lock_);
    made_[key] = ++count_;
  }
  void remove(uint32_t key) {
    const base::LockGuard guard(lock_);
    made_.erase(key);
  }
  /// How many were made so far.
  uint64_t count() {
    const base::LockGuard guard(lock_);
    return count_;
  }
  /// Whether the region was made after the first `count`.
  bool is_after(uint32_t key, uint64_t count) {
    const base::LockGuard guard(lock_);
    const auto found = made_.find(key);
    return found != made_.end() && found->second > count;
  }

 private:
  base::AdaptiveMutex lock_;
  uint64_t count_ RINGBOLT_GUARDED_BY(lock_) = 0;
  std::unordered_map<uint32_t, uint64_t> made_ RINGBOLT_GUARDED_BY(lock_);
};

}  // namespace ringbolt::device
