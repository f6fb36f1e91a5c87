#include "rsocket/sleeper.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

namespace ringbolt::rsocket {

Sleeper::Sleeper() : bell_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

Sleeper& Sleeper::of_this_thread() {
  thread_local Sleeper sleeper;
  return sleeper;
}

int Sleeper::sleep(std::vector<pollfd>& waits, const Deadline& deadline) {
  // Without a descriptor for the bell (none was left), poll() passes over -1 and the bound of a sleep must do.
  waits.push_back({bell_.get(), POLLIN, 0});
  const int ready = ::poll(waits.data(), waits.size(), deadline.sleep_ms(longest_sleep_ns_));
  const int error = errno;
  const bool has_rung = waits.back().revents != 0;
  waits.pop_back();
  if (has_rung) {
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t read = ::read(bell_.get(), &count, sizeof count);
  }
  errno = error;
  return ready;
}

void Sleeper::ring() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(bell_.get(), &one, sizeof one);
}

}  // namespace ringbolt::rsocket
