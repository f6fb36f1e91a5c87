#include "rsocket/blocking_socket.h"

#include <fcntl.h>
#include <sys/socket.h>

namespace ringbolt::rsocket {

Status BlockingSocket::set_file_flags(int flags) {
  file_flags_ = flags;
  return {};
}

bool BlockingSocket::is_nonblocking(int flags) const {
  return (flags & MSG_DONTWAIT) != 0 || (file_flags_.load() & O_NONBLOCK) != 0;
}

Deadline BlockingSocket::deadline_of(const timeval& timeout, int flags) const {
  return is_nonblocking(flags) ? Deadline::in_ns(0) : Deadline::of_option(timeout);
}

short BlockingSocket::poll(short events) {
  const base::LockGuard lock(lock_);
  progress();
  return events_now(events);
}

short BlockingSocket::begin_sleep(short events, Sleeper& sleeper, std::vector<pollfd>& waits) {
  const base::LockGuard lock(lock_);
  do {
    progress();
    const short now = events_now(events);
    if (now != 0) {
      return now;
    }
    // What came in before the queue was armed may have raised no event: it is looked at once more.
  } while (arm());
  watchers_.add(sleeper);
  add_waits(waits);
  return 0;
}

void BlockingSocket::end_sleep(Sleeper& sleeper) {
  const base::LockGuard lock(lock_);
  watchers_.remove(sleeper);
  take_events();
}

}  // namespace ringbolt::rsocket
