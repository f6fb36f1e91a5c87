#pragma once

#include <shared_mutex>

#include "base/lock_guard.h"

namespace ringbolt::base {

/// std::shared_mutex likewise: many may read, or one write. Thread-safe.
class RINGBOLT_CAPABILITY("shared_mutex") SharedMutex {
 public:
  void lock() RINGBOLT_ACQUIRE() RINGBOLT_NOT_ANALYSED { mutex_.lock(); }
  void unlock() RINGBOLT_RELEASE() RINGBOLT_NOT_ANALYSED { mutex_.unlock(); }
  // Blocks while somebody writes; without a limit of time.
  void lock_shared() RINGBOLT_ACQUIRE_SHARED() RINGBOLT_NOT_ANALYSED { mutex_.lock_shared(); }
  void unlock_shared() RINGBOLT_RELEASE_SHARED() RINGBOLT_NOT_ANALYSED { mutex_.unlock_shared(); }

 private:
  std::shared_mutex mutex_;
};

/// Reads until the end of the scope. Not to be taken twice by one thread: a writer that waits in between would block
/// both for good.
class RINGBOLT_SCOPED_CAPABILITY SharedLock {
 public:
  explicit SharedLock(SharedMutex& mutex) RINGBOLT_ACQUIRE_SHARED(mutex) : mutex_(mutex) { mutex_.lock_shared(); }
  SharedLock(const SharedLock&) = delete;
  SharedLock& operator=(const SharedLock&) = delete;
  ~SharedLock() RINGBOLT_RELEASE_GENERIC() { mutex_.unlock_shared(); }

 private:
  SharedMutex& mutex_;
};

}  // namespace ringbolt::base
