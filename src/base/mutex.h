#pragma once

#include <mutex>

#include "base/lock_guard.h"

namespace ringbolt::base {

/// std::mutex, which tells clang's analysis what it is: libstdc++'s does not. Thread-safe.
class RINGBOLT_CAPABILITY("mutex") Mutex {
 public:
  void lock() RINGBOLT_ACQUIRE() RINGBOLT_NOT_ANALYSED { mutex_.lock(); }
  bool try_lock() RINGBOLT_TRY_ACQUIRE(true) RINGBOLT_NOT_ANALYSED { return mutex_.try_lock(); }
  void unlock() RINGBOLT_RELEASE() RINGBOLT_NOT_ANALYSED { mutex_.unlock(); }

 private:
  friend class Condition;
  std::mutex mutex_;
};

}  // namespace ringbolt::base
