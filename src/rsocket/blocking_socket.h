#pragma once

#include <atomic>
#include <vector>

#include "base/mutex.h"
#include "rsocket/deadline.h"
#include "rsocket/settings.h"
#include "rsocket/sleeper.h"
#include "rsocket/socket.h"

namespace ringbolt::rsocket {

/// What sockets of all kinds have in common: calls that wait. There is no thread behind a socket: each call takes along
/// what has come in; one that waits polls for a while, then sleeps on the socket's descriptors, and rings those that
/// sleep on it beside itself when it has taken something off them. Thread-safe.
/// One lock a socket; no call holds it while it sleeps or spins.
class BlockingSocket : public Socket {
 public:
  int file_flags() const final { return file_flags_.load(); }
  Status set_file_flags(int flags) final;
  short poll(short events) final RINGBOLT_EXCLUDES(lock_);
  short begin_sleep(short events, Sleeper& sleeper, std::vector<pollfd>& waits) final RINGBOLT_EXCLUDES(lock_);
  void end_sleep(Sleeper& sleeper) final RINGBOLT_EXCLUDES(lock_);

 protected:
  /// `flags`: of a call, as MSG_DONTWAIT.
  bool is_nonblocking(int flags) const;
  /// `timeout`: of the socket for such calls; 0: none.
  /// Over at once for a call that does not block.
  Deadline deadline_of(const timeval& timeout, int flags) const;

  /// Makes progress until `done()`, or `deadline`: EAGAIN; or a signal: EINTR. Gives the lock up meanwhile.
  template <class Done>
  Status wait(const Deadline& deadline, Done done) RINGBOLT_REQUIRES(lock_);
  /// A signal does not end this.
  template <class Done>
  Status wait_through_signals(const Deadline& deadline, Done done) RINGBOLT_REQUIRES(lock_);
  /// The state has changed: everybody may look again.
  /// One write(2) for each thread that sleeps; never blocks.
  void wake_all() RINGBOLT_REQUIRES(lock_) { watchers_.ring(); }

  base::Mutex lock_;  ///< of the whole socket

 private:
  /// Takes what has come in, without waiting.
  virtual void progress() RINGBOLT_REQUIRES(lock_) = 0;
  /// Which of `events` hold, as poll() has it.
  virtual short events_now(short events) const RINGBOLT_REQUIRES(lock_) = 0;
  /// Makes what comes next raise an event. True: it was not armed, and what came in before that may have raised none.
  virtual bool arm() RINGBOLT_REQUIRES(lock_) = 0;
  /// Adds the descriptors that an event shows on.
  virtual void add_waits(std::vector<pollfd>& waits) const RINGBOLT_REQUIRES(lock_) = 0;
  /// After a sleep: takes the events off the descriptors.
  virtual void take_events() RINGBOLT_REQUIRES(lock_) = 0;

  // Read without the lock by calls that have yet to take one; sequentially consistent.
  std::atomic<int> file_flags_{0};
  WatchList watchers_ RINGBOLT_GUARDED_BY(lock_);
};

template <class Done>
Status BlockingSocket::wait(const Deadline& deadline, Done done) {
  // In the watch list only while it sleeps, so it outlives what is there of it.
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
    // Under the same hold of the lock as arm(): who takes an event off the descriptors from here on rings.
    watchers_.add(sleeper);
    bool is_interrupted = false;
    {
      const base::Unlocked unlocked(lock_);
      is_interrupted = sleeper.sleep(waits, deadline) < 0 && errno == EINTR;
    }
    watchers_.remove(sleeper);
    // Also where nothing has come: another thread's wake-up may have been for all.
    take_events();
    if (is_interrupted) {
      return base::fail(EINTR);
    }
  }
}

template <class Done>
Status BlockingSocket::wait_through_signals(const Deadline& deadline, Done done) {
  Status status;
  do {
    status = wait(deadline, done);
  } while (!status && status.error().value == EINTR);
  return status;
}

}  // namespace ringbolt::rsocket
