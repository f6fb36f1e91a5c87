#include "link/peer_events.h"

#include <poll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/error.h"

namespace ringbolt::link {
namespace {

// A key is the source in the upper bits and the id, counted from 1, in the others.
constexpr unsigned kSourceShift = 56;
constexpr uint64_t kIdMask = (uint64_t{1} << kSourceShift) - 1;

uint64_t key_of(Source source, uint64_t id) { return (static_cast<uint64_t>(source) << kSourceShift) | id; }

}  // namespace

PeerEvents::PeerEvents()
    : epoll_(epoll_create1(EPOLL_CLOEXEC)), retry_timer_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
  if (!epoll_.is_open() || !retry_timer_.is_open() || !add(retry_timer_.get(), Source::retry_timer, 0)) {
    throw base::Error(errno, "epoll_create1, timerfd_create", "rendezvous", "look at the limit of files (ulimit -n)");
  }
}

bool PeerEvents::add(int fd, Source source, uint64_t id) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = key_of(source, id);
  return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

void PeerEvents::remove(int fd) { epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

Watch PeerEvents::watch_of_line(uint64_t id) const {
  return {epoll_.get(), key_of(Source::line, id), retry_timer_.get()};
}

size_t PeerEvents::wait(std::span<epoll_event> events, int timeout_ms) {
  const int count = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout_ms);
  return static_cast<size_t>(std::max(count, 0));
}

bool PeerEvents::has_pending() const {
  pollfd waiting{epoll_.get(), POLLIN, 0};
  return poll(&waiting, 1, 0) == 1;
}

void PeerEvents::acknowledge_retry() {
  uint64_t ticks = 0;
  (void)!read(retry_timer_.get(), &ticks, sizeof ticks);
}

Source PeerEvents::source_of(const epoll_event& event) { return static_cast<Source>(event.data.u64 >> kSourceShift); }

uint64_t PeerEvents::id_of(const epoll_event& event) { return event.data.u64 & kIdMask; }

void PeerEvents::abandon_after_fork() {
  epoll_.reset();
  retry_timer_.reset();
}

}  // namespace ringbolt::link
