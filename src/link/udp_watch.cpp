#include "link/udp_watch.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/error.h"
#include "base/process_descriptor.h"

namespace ringbolt::link {
namespace {

bool add(int epoll, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

}  // namespace

UdpWatch::UdpWatch()
    : epoll_(epoll_create1(EPOLL_CLOEXEC)), timer_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
  if (!epoll_.is_open() || !timer_.is_open() || !add(epoll_.get(), timer_.get())) {
    throw base::Error(errno, "epoll or timer", "UDP link", "look at the limits of this process (ulimit -n)");
  }
}

void UdpWatch::watch(const std::vector<pid_t>& processes) {
  std::map<pid_t, base::UniqueFd> before;
  before.swap(processes_);
  for (const pid_t pid : processes) {
    if (processes_.contains(pid)) {
      continue;
    }
    if (const auto old = before.find(pid); old != before.end()) {
      processes_.insert(before.extract(old));
      continue;
    }
    base::UniqueFd process = base::open_process(pid);
    if (process.is_open() && add(epoll_.get(), process.get())) {
      processes_.emplace(pid, std::move(process));
    }
  }
}

void UdpWatch::alarm_in(uint64_t delay_ms) {
  constexpr uint64_t kMillisecondsPerSecond = 1000;
  itimerspec when{};
  when.it_value.tv_sec = static_cast<time_t>(delay_ms / kMillisecondsPerSecond);
  when.it_value.tv_nsec = static_cast<long>(delay_ms % kMillisecondsPerSecond * 1'000'000);
  timerfd_settime(timer_.get(), 0, &when, nullptr);
}

bool UdpWatch::take_news() {
  std::array<epoll_event, 16> events;
  const int count = epoll_wait(epoll_.get(), events.data(), events.size(), 0);
  for (int i = 0; i < count; ++i) {
    const int fd = events[static_cast<size_t>(i)].data.fd;
    uint64_t expirations = 0;
    if (fd == timer_.get()) {
      (void)!read(timer_.get(), &expirations, sizeof expirations);
    } else {
      std::erase_if(processes_, [fd](const auto& process) { return process.second.get() == fd; });
    }
  }
  return count > 0;
}

void UdpWatch::abandon_after_fork() {
  epoll_.reset();
  timer_.reset();
  processes_.clear();
}

}  // namespace ringbolt::link
