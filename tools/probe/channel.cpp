#include "probe/channel.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

#include "base/clock.h"
#include "probe/probe_failure.h"

namespace ringbolt::tools {
namespace {

void wait_readable(int fd, uint64_t deadline_ns) {
  const uint64_t now = base::now_ns();
  const auto left_ms = now >= deadline_ns ? 0 : static_cast<int>((deadline_ns - now) / 1'000'000 + 1);
  pollfd polled{fd, POLLIN, 0};
  if (::poll(&polled, 1, left_ms) == 0) {
    throw ProbeFailure("the other end did not answer in time", true);
  }
}

}  // namespace

void Channel::exchange(std::span<const std::byte> mine, std::span<std::byte> theirs) {
  // Messages of some tens of bytes: they fit the buffer of a socket or pipe, so sending first can't block.
  if (::write(write_fd_, mine.data(), mine.size()) != static_cast<ssize_t>(mine.size())) {
    throw ProbeFailure("the other end is gone", true);
  }
  while (!theirs.empty()) {
    wait_readable(read_fd_, deadline_ns_);
    const ssize_t got = ::read(read_fd_, theirs.data(), theirs.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
      continue;
    }
    if (got <= 0) {
      throw ProbeFailure("the other end is gone", true);
    }
    theirs = theirs.subspan(static_cast<size_t>(got));
  }
}

void Channel::meet() {
  const std::byte mine{1};
  std::byte theirs{};
  exchange({&mine, 1}, {&theirs, 1});
}

}  // namespace ringbolt::tools
