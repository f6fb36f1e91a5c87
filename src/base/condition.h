#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "base/mutex.h"

namespace ringbolt::base {

/// std::condition_variable for base::Mutex. The caller holds the mutex, and does again when a wait returns. A predicate
/// is asked with it held, and says so: `[&]() RINGBOLT_REQUIRES(mutex) { return is_over; }`. Thread-safe.
class Condition {
 public:
  void notify_one() noexcept { condition_.notify_one(); }
  void notify_all() noexcept { condition_.notify_all(); }

  void wait(Mutex& mutex) RINGBOLT_REQUIRES(mutex) {
    Borrowed borrowed(mutex.mutex_);
    condition_.wait(borrowed.lock);
  }
  template <class Predicate>
  void wait(Mutex& mutex, Predicate is_true) RINGBOLT_REQUIRES(mutex) {
    // The loop is ours, since the analysis does not follow the predicate into the library's.
    while (!call_locked(is_true)) {
      wait(mutex);
    }
  }
  /// Also returns when the time has passed, and for no reason.
  void wait_for(Mutex& mutex, std::chrono::nanoseconds most) RINGBOLT_REQUIRES(mutex) {
    Borrowed borrowed(mutex.mutex_);
    // By the steady clock: a change of the machine's time does not lengthen it.
    condition_.wait_for(borrowed.lock, most);
  }
  /// Whether the predicate came true in time.
  template <class Predicate>
  bool wait_for(Mutex& mutex, std::chrono::nanoseconds most, Predicate is_true)
      RINGBOLT_REQUIRES(mutex) RINGBOLT_NOT_ANALYSED {
    Borrowed borrowed(mutex.mutex_);
    return condition_.wait_for(borrowed.lock, most, is_true);
  }

 private:
  /// The caller's hold on a mutex, in the form that the library wants.
  // std::condition_variable takes a std::unique_lock alone; this one must not unlock as it goes, since the caller
  // still holds the mutex. It also runs while a cancelled thread unwinds out of the wait, which returns with the
  // mutex held.
  struct Borrowed {
    explicit Borrowed(std::mutex& mutex) : lock(mutex, std::adopt_lock) {}
    ~Borrowed() { lock.release(); }
    std::unique_lock<std::mutex> lock;
  };

  std::condition_variable condition_;
};

}  // namespace ringbolt::base
