#pragma once

#include <pthread.h>
#include <signal.h>

#include <thread>
#include <utility>

namespace ringbolt::base {

/// Blocks the program's signals in this thread while it lives: a thread that is made meanwhile inherits that. Such a
/// thread must get none of them, for the program's handlers may rely on running in threads that it knows. Not those by
/// which a thread hears of its own fault: blocked, they would end the process without the program's handler. Does not
/// throw. Of one thread.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    ::sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) {
      ::sigdelset(&all, fault);
    }
    ::pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_{};
};

/// A thread of ours, with the program's signals blocked: all of them are made by this. Throws std::system_error where
/// no thread is to be had, and std::bad_alloc.
template <class Run>
[[nodiscard]] std::thread start_thread(Run&& run) {
  const BlockedSignals blocked;
  return std::thread(std::forward<Run>(run));
}

}  // namespace ringbolt::base
