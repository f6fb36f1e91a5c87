#pragma once

#include "base/thread_safety.h"

namespace ringbolt::base {

/// For a lock that its new owner holds already.
struct AdoptLock {};
inline constexpr AdoptLock kAdoptLock;

/// Holds a lock until the end of the scope. The lock must outlive it. Of the thread that made it, as the lock is.
template <class Mutex>
class RINGBOLT_SCOPED_CAPABILITY LockGuard {
 public:
  explicit LockGuard(Mutex& mutex) RINGBOLT_ACQUIRE(mutex) : mutex_(mutex) { mutex_.lock(); }
  LockGuard(Mutex& mutex, AdoptLock) RINGBOLT_REQUIRES(mutex) : mutex_(mutex) {}
  LockGuard(const LockGuard&) = delete;
  LockGuard& operator=(const LockGuard&) = delete;
  ~LockGuard() RINGBOLT_RELEASE() { mutex_.unlock(); }

 private:
  Mutex& mutex_;
};

/// Gives a lock back until the end of the scope.
template <class Mutex>
class RINGBOLT_SCOPED_CAPABILITY Unlocked {
 public:
  explicit Unlocked(Mutex& mutex) RINGBOLT_RELEASE(mutex) : mutex_(mutex) { mutex_.unlock(); }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;
  ~Unlocked() RINGBOLT_RELEASE() { mutex_.lock(); }

 private:
  Mutex& mutex_;
};

/// Calls what says that it is called with a lock held, where the analysis can't see that this is so: a callee knows the
/// lock of its caller's object by another name, or none.
template <class Function, class... Arguments>
decltype(auto) call_locked(Function&& function, Arguments&&... arguments) RINGBOLT_NOT_ANALYSED {
  return function(static_cast<Arguments&&>(arguments)...);
}

/// Holds a lock until the end of the scope, but for times at which its owner gives it back.
template <class Mutex>
class RINGBOLT_SCOPED_CAPABILITY UniqueLock {
 public:
  /// Of no lock.
  UniqueLock() = default;
  explicit UniqueLock(Mutex& mutex) RINGBOLT_ACQUIRE(mutex) : mutex_(&mutex), is_owned_(true) { mutex_->lock(); }
  UniqueLock(const UniqueLock&) = delete;
  UniqueLock& operator=(const UniqueLock&) = delete;
  ~UniqueLock() RINGBOLT_RELEASE() {
    if (is_owned_) {
      mutex_->unlock();
    }
  }

  // Not while it is owned: locks here are not recursive.
  void lock() RINGBOLT_ACQUIRE() RINGBOLT_NOT_ANALYSED {
    mutex_->lock();
    is_owned_ = true;
  }
  void unlock() RINGBOLT_RELEASE() RINGBOLT_NOT_ANALYSED {
    is_owned_ = false;
    mutex_->unlock();
  }
  bool owns_lock() const { return is_owned_; }

 private:
  Mutex* mutex_ = nullptr;
  bool is_owned_ = false;
};

}  // namespace ringbolt::base
