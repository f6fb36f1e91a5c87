#pragma once

#include "rsocket/stream.h"

namespace ringbolt::rsocket {

template <class Done>
Status Stream::wait(Lock& lock, const Deadline& deadline, Done done) {
  Sleeper& sleeper = Sleeper::of_this_thread();
  uint64_t spin_until_ns = 0;
  for (;;) {
    progress();
    if (done()) {
      return {};
    }
    if (deadline.is_over()) {
      return base::fail(EAGAIN);
    }
    const uint64_t now_ns = base::now_ns();
    spin_until_ns = spin_until_ns == 0 ? now_ns + default_spin_ns() : spin_until_ns;
    if (now_ns < spin_until_ns) {
      lock.unlock();  // the other direction may want to move
      lock.lock();
      continue;
    }
    if (arm()) {
      continue;  // what came in before that raises no event
    }
    std::vector<pollfd>& waits = sleeper.scratch();
    waits.clear();
    add_waits(waits);
    watchers_.add(sleeper);
    lock.unlock();
    const bool is_interrupted = sleeper.sleep(waits, deadline) < 0 && errno == EINTR;
    lock.lock();
    watchers_.remove(sleeper);
    take_events();
    keep_alive();
    if (is_interrupted) {
      return base::fail(EINTR);
    }
  }
}

}  // namespace ringbolt::rsocket
