#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>

#include "base/lock_guard.h"
#include "base/mutex.h"

namespace ringbolt::device {

/// The memory windows of a process, by the key that each was given: whose they are, under which key they are open, and
/// over which region. Nothing but add() allocates. Thread-safe; its lock is a leaf.
class WindowBook {
 public:
  /// Throws std::bad_alloc.
  void add(uint32_t key, uint32_t pd_key) {
    const base::LockGuard guard(mutex_);
    windows_[key & kWindow] = {pd_key, 0, 0};
  }
  /// The key under which it was open; 0: it was not.
  // The window is gone.
  uint32_t remove(uint32_t key) {
    const base::LockGuard guard(mutex_);
    const auto found = windows_.find(key & kWindow);
    const uint32_t open_key = found == windows_.end() ? 0 : found->second.open_key;
    windows_.erase(key & kWindow);
    return open_key;
  }
  /// `key` may become that of a window of this domain: it differs from what the window was given in its low byte alone.
  bool holds(uint32_t key, uint32_t pd_key) {
    const base::LockGuard guard(mutex_);
    const auto found = windows_.find(key & kWindow);
    return found != windows_.end() && found->second.pd_key == pd_key;
  }
  /// No effect for a window that is gone.
  void open(uint32_t key, uint32_t region_key) {
    const base::LockGuard guard(mutex_);
    if (const auto found = windows_.find(key & kWindow); found != windows_.end()) {
      found->second.open_key = key;
      found->second.region_key = region_key;
    }
  }
  /// The key under which it was open; 0: it was not.
  uint32_t close(uint32_t key) {
    const base::LockGuard guard(mutex_);
    const auto found = windows_.find(key & kWindow);
    if (found == windows_.end()) {
      return 0;
    }
    const uint32_t open_key = found->second.open_key;
    found->second.open_key = found->second.region_key = 0;
    return open_key;
  }
  /// One is open over the region.
  bool has_window(uint32_t region_key) {
    const base::LockGuard guard(mutex_);
    return std::ranges::any_of(windows_, [&](const auto& entry) { return entry.second.region_key == region_key; });
  }

 private:
  struct Window {
    uint32_t pd_key;
    uint32_t open_key;
    uint32_t region_key;
  };
  static constexpr uint32_t kWindow = ~0xffU;  // the low byte changes from binding to binding
  base::Mutex mutex_;
  std::unordered_map<uint32_t, Window> windows_ RINGBOLT_GUARDED_BY(mutex_);
};

}  // namespace ringbolt::device
