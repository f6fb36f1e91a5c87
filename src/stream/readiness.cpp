#include "stream/readiness.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"

namespace ringbolt::stream {
namespace {

int checked(int fd, const char* call) {
  if (fd < 0) {
    throw base::Error(errno, call, "a stream's descriptor");
  }
  return fd;
}

}  // namespace

Readiness::Readiness()
    : epoll_(checked(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
      bell_(checked(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), "eventfd")) {
  watch(bell_.get());
}

void Readiness::watch(int fd) {
  epoll_event wanted{};
  wanted.events = EPOLLIN;
  wanted.data.fd = fd;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &wanted) != 0 && errno != EEXIST) {
    throw base::Error(errno, "epoll_ctl", "a stream's descriptor");
  }
}

void Readiness::ring(bool is_wanted) {
  if (is_wanted == is_rung_) {
    return;
  }
  uint64_t count = 1;
  if (is_wanted) {
    // Never fails: the count is 0 before, as is_rung_ says.
    [[maybe_unused]] const ssize_t written = ::write(bell_.get(), &count, sizeof count);
  } else {
    [[maybe_unused]] const ssize_t read = ::read(bell_.get(), &count, sizeof count);
  }
  is_rung_ = is_wanted;
}

}  // namespace ringbolt::stream
