#include "rsocket/sleeper.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace ringbolt::rsocket {

int Deadline::sleep_ms() const {
  const uint64_t now = base::now_ns();
  const uint64_t left = at_ns_ <= now ? 0 : at_ns_ - now;
  return static_cast<int>((std::min(left, kMaxSleepNs) + 999'999) / 1'000'000);
}

Sleeper::Sleeper() : bell_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

Sleeper& Sleeper::of_this_thread() {
  thread_local Sleeper sleeper;
  return sleeper;
}

int Sleeper::sleep(std::vector<pollfd>& waits, const Deadline& deadline) {
  // Without a descriptor for the bell (none was left), poll() passes over -1 and the bound of a sleep must do.
  waits.push_back({bell_.get(), POLLIN, 0});
  const int ready = ::poll(waits.data(), waits.size(), deadline.sleep_ms());
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
