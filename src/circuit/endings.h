#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <thread>

#include "base/condition.h"
#include "base/mutex.h"

namespace ringbolt::circuit {

/// The thread that ends queue pairs. Some devices complete sends before these leave, and wait in the end of a
/// queue pair, up to half a second, for a peer to take them, which one that stands still never does; meanwhile others
/// have to be told of that peer. Thread-safe.
class Endings {
 public:
  using Then = std::function<void()>;

  Endings() = default;
  /// Ends all that it has. Waits for all of them, half a second each at most.
  ~Endings();
  Endings(const Endings&) = delete;
  Endings& operator=(const Endings&) = delete;

  /// Destroys `what` in the thread, if nobody else has it, and calls `then`. The thread begins with the first one;
  /// where there is none to be had, this does it. `then` runs after the destruction, in the thread, and may take a
  /// circuit's lock; it must not throw. In the caller's own thread where no thread can be had: so not while it holds
  /// that lock.
  void end(std::shared_ptr<void> what, Then then) RINGBOLT_EXCLUDES(lock_);

 private:
  struct Ending {
    std::shared_ptr<void> what;
    Then then;
  };
  void run();

  base::Mutex lock_;
  base::Condition woken_;
  std::deque<Ending> endings_ RINGBOLT_GUARDED_BY(lock_);
  bool is_over_ RINGBOLT_GUARDED_BY(lock_) = false;
  std::thread thread_ RINGBOLT_GUARDED_BY(lock_);
};

}  // namespace ringbolt::circuit
