#include "circuit/endings.h"

#include <system_error>
#include <utility>

#include "base/lock_guard.h"
#include "base/start_thread.h"

namespace ringbolt::circuit {

Endings::~Endings() {
  std::thread thread;
  {
    const base::LockGuard guard(lock_);
    is_over_ = true;
    woken_.notify_one();
    // Joined without the lock, which the thread takes for each ending.
    thread.swap(thread_);
  }
  if (thread.joinable()) {
    thread.join();
  }
}

void Endings::end(std::shared_ptr<void> what, Then then) {
  {
    const base::LockGuard guard(lock_);
    bool has_thread = thread_.joinable();
    try {
      if (!has_thread) {
        thread_ = base::start_thread([this] { run(); });
        has_thread = true;
      }
    } catch (const std::system_error&) {
      has_thread = false;
    }
    if (has_thread) {
      endings_.push_back({std::move(what), std::move(then)});
      woken_.notify_one();
      return;
    }
  }
  what.reset();
  then();
}

void Endings::run() {
  while (true) {
    Ending next;
    {
      const base::LockGuard guard(lock_);
      woken_.wait(lock_, [&]() RINGBOLT_REQUIRES(lock_) { return !endings_.empty() || is_over_; });
      if (endings_.empty()) {
        return;
      }
      next = std::move(endings_.front());
      endings_.pop_front();
    }
    next.what.reset();
    next.then();
  }
}

}  // namespace ringbolt::circuit
