#pragma once

#include "rsocket/stream.h"

namespace ringbolt::rsocket {

template <class Done>
Status Stream::wait(const Deadline& deadline, Done done) {
  Sleeper& sleeper = Sleeper::of_this_thread();
  uint64_t spin_until_ns = 0;
  for (;;) {
    progress();
    if (base::call_locked(done)) {
      return {};
    }
    if (deadline.is_over()) {
      return base::fail(EAGAIN);
    }
    const uint64_t now_ns = base::now_ns();
    spin_until_ns = spin_until_ns == 0 ? now_ns + default_spin_ns() : spin_until_ns;
    if (now_ns < spin_until_ns) {
      const base::Unlocked unlocked(lock_);  // the other direction may want to move
      continue;
    }
    if (arm()) {
      continue;  // what came in before that raises no event
    }
    std::vector<pollfd>& waits = sleeper.scratch();
    waits.clear();
    add_waits(waits);
    watchers_.add(sleeper);
    bool is_interrupted = false;
    {
      const base::Unlocked unlocked(lock_);
      is_interrupted = sleeper.sleep(waits, deadline) < 0 && errno == EINTR;
    }
    watchers_.remove(sleeper);
    take_events();
    keep_alive();
    if (is_interrupted) {
      return base::fail(EINTR);
    }
  }
}

}  // namespace ringbolt::rsocket
