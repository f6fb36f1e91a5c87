#pragma once

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <functional>
#include <thread>
#include <utility>

namespace ringbolt::bench {

/// Binds the calling thread to a core; where that core does not exist the thread stays free.
inline void pin_thread(unsigned core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  pthread_setaffinity_np(pthread_self(), sizeof cores, &cores);
}

/// The other side of a two-core benchmark: runs `step` on core 1, again and again, until it goes out of scope.
/// `step` must return within bounded time when there is nothing to do. The creating thread is bound to core 0.
/// What `step` throws ends the process. What it refers to outlives this.
class PinnedThread {
 public:
  explicit PinnedThread(std::function<void()> step)
      : thread_([this, step = std::move(step)] {
          pin_thread(1);
          while (!is_stopping_.load(std::memory_order_relaxed)) {
            step();
          }
        }) {
    pin_thread(0);
  }
  ~PinnedThread() {
    is_stopping_.store(true);
    thread_.join();
  }
  PinnedThread(const PinnedThread&) = delete;
  PinnedThread& operator=(const PinnedThread&) = delete;

 private:
  std::atomic<bool> is_stopping_{false};
  std::thread thread_;
};

}  // namespace ringbolt::bench
