#pragma once

#include "base/adaptive_mutex.h"
#include "base/lock_guard.h"

namespace ringbolt::device {

/// A queue pair has one lock for sending and one for receiving, so that two threads may do both at once. Each of its
/// parts reaches them by a path of its own, which clang's analysis would take for locks of its own: it knows them by
/// these roles instead. That is enough, for nobody ever holds the locks of two queue pairs.
/// Both come after the locks of completion queues, and before those of parts, which are leaves. AdaptiveMutex, since
/// posting takes one each time. One may be held over system calls that do not wait.
class RINGBOLT_CAPABILITY("role") HalfRole {};
inline HalfRole receive_half;
inline HalfRole send_half RINGBOLT_ACQUIRED_BEFORE(receive_half);

/// Whoever takes both takes `send` first.
struct HalfLocks {
  base::AdaptiveMutex send RINGBOLT_HELD_AS(send_half);
  base::AdaptiveMutex receive RINGBOLT_HELD_AS(receive_half);
};

/// Takes the lock for sending if nobody holds it.
inline bool try_lock_send(HalfLocks& locks) RINGBOLT_TRY_ACQUIRE(true, send_half) RINGBOLT_NOT_ANALYSED {
  return locks.send.try_lock();
}

/// Holds the lock for sending until the end of the scope.
class RINGBOLT_SCOPED_CAPABILITY SendGuard {
 public:
  explicit SendGuard(HalfLocks& locks) RINGBOLT_ACQUIRE(send_half) RINGBOLT_NOT_ANALYSED : lock_(locks.send) {
    lock_.lock();
  }
  /// Its new owner holds it already.
  SendGuard(HalfLocks& locks, base::AdoptLock) RINGBOLT_REQUIRES(send_half) RINGBOLT_NOT_ANALYSED : lock_(locks.send) {}
  SendGuard(const SendGuard&) = delete;
  SendGuard& operator=(const SendGuard&) = delete;
  ~SendGuard() RINGBOLT_RELEASE() RINGBOLT_NOT_ANALYSED { lock_.unlock(); }

 private:
  base::AdaptiveMutex& lock_;
};

/// Holds the lock for receiving until the end of the scope.
class RINGBOLT_SCOPED_CAPABILITY ReceiveGuard {
 public:
  explicit ReceiveGuard(HalfLocks& locks) RINGBOLT_ACQUIRE(receive_half) RINGBOLT_NOT_ANALYSED : lock_(locks.receive) {
    lock_.lock();
  }
  ReceiveGuard(const ReceiveGuard&) = delete;
  ReceiveGuard& operator=(const ReceiveGuard&) = delete;
  ~ReceiveGuard() RINGBOLT_RELEASE() RINGBOLT_NOT_ANALYSED { lock_.unlock(); }

 private:
  base::AdaptiveMutex& lock_;
};

}  // namespace ringbolt::device
