#include "link/stream_endpoint.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <utility>

#include "base/error.h"

namespace ringbolt::link {
namespace {

base::UniqueFd checked(int descriptor, const char* call) {
  if (descriptor < 0) {
    throw base::Error(errno, call, "stream", "look at the limits of this process (ulimit -n)");
  }
  return base::UniqueFd(descriptor);
}

/// A pipe without a reader raises a signal, which is none of the program's business: it is held back and taken away.
ssize_t write_quietly(int descriptor, std::span<const std::byte> bytes) {
  sigset_t pipe;
  sigset_t before;
  sigset_t pending;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  sigpending(&pending);
  pthread_sigmask(SIG_BLOCK, &pipe, &before);
  const ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
  const int error = errno;
  if (count < 0 && error == EPIPE && sigismember(&pending, SIGPIPE) == 0) {
    const timespec at_once{};
    sigtimedwait(&pipe, nullptr, &at_once);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return count;
}

ssize_t write_some(const OpenStream& stream, std::span<const std::byte> bytes) {
  if (stream.is_socket) {
    return send(stream.in.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  return stream.is_pipe ? write_quietly(stream.write_descriptor(), bytes)
                        : ::write(stream.write_descriptor(), bytes.data(), bytes.size());
}

bool is_only_busy(int error) { return error == EAGAIN || error == EINTR || error == ENOBUFS; }

StreamLink::Options with_rails(StreamLink::Options options, size_t rails) {
  options.rails = rails;
  return options;
}

}  // namespace

StreamEndpoint::StreamEndpoint(std::vector<std::unique_ptr<StreamSource>> sources, StreamLink::Options options,
                               uint64_t now_ns)
    : link_(with_rails(std::move(options), sources.size())),
      epoll_(checked(epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
      timer_(checked(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK), "timerfd_create")) {
  epoll_event event{};
  event.events = EPOLLIN;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, timer_.get(), &event) != 0) {
    throw base::Error(errno, "epoll_ctl", "stream", "look at /proc/sys/fs/epoll/max_user_watches");
  }
  for (auto& source : sources) {
    rails_.emplace_back().source = std::move(source);
  }
  open_what_is_due(now_ns);
  flush(now_ns);
}

StreamEndpoint::~StreamEndpoint() = default;

void StreamEndpoint::open_what_is_due(uint64_t now_ns) {
  for (size_t index = 0; index < rails_.size(); ++index) {
    Rail& rail = rails_[index];
    if (!rail.has_stream() && !rail.is_gone && now_ns >= rail.retry_at_ns) {
      open(index, now_ns);
    }
  }
}

void StreamEndpoint::open(size_t index, uint64_t now_ns) {
  Rail& rail = rails_[index];
  auto opened = rail.source->open();
  if (!opened) {
    rail.is_gone = opened.error().value == ENODEV && !rail.source->can_reopen();
    const bool is_listening = opened.error().value == EAGAIN && rail.source->listener() >= 0;
    watch_listener(rail, is_listening);
    rail.retry_at_ns = is_listening ? now_ns : now_ns + rail.retry_ns;
    rail.retry_ns = std::min(rail.retry_ns * 2, kLastRetryNs);
    return;
  }
  watch_listener(rail, false);
  rail.stream = std::move(*opened);
  epoll_event event{};
  event.events = EPOLLIN;
  epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, rail.stream.in.get(), &event);
  if (rail.stream.out.is_open()) {
    event.events = 0;
    epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, rail.stream.out.get(), &event);
  }
  rail.wants_room = false;
  link_.open(index, now_ns);
}

/// The link keeps what was not acknowledged: other rails, or this one once it is open again, carry it.
void StreamEndpoint::close(size_t index, uint64_t now_ns) {
  Rail& rail = rails_[index];
  drop_stream(rail);
  rail.retry_at_ns = now_ns + rail.retry_ns;
  rail.retry_ns = std::min(rail.retry_ns * 2, kLastRetryNs);
  link_.close(index);
}

void StreamEndpoint::drop_stream(Rail& rail) {
  // Said, since closing a duplicate leaves the open file, and with it the watch.
  for (const int descriptor : {rail.stream.in.get(), rail.stream.out.get()}) {
    if (descriptor >= 0) {
      epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, nullptr);
    }
  }
  rail.stream = {};
}

void StreamEndpoint::watch(Rail& rail, bool wants_room) {
  if (rail.wants_room == wants_room) {
    return;
  }
  rail.wants_room = wants_room;
  epoll_event event{};
  if (rail.stream.out.is_open()) {
    event.events = wants_room ? EPOLLOUT : 0U;
    epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, rail.stream.out.get(), &event);
  } else {
    event.events = EPOLLIN | (wants_room ? EPOLLOUT : 0U);
    epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, rail.stream.in.get(), &event);
  }
}

void StreamEndpoint::watch_listener(Rail& rail, bool is_wanted) {
  if (rail.is_listening != is_wanted) {
    rail.is_listening = is_wanted;
    epoll_event event{};
    event.events = EPOLLIN;
    epoll_ctl(epoll_.get(), is_wanted ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, rail.source->listener(), &event);
  }
}

bool StreamEndpoint::read(size_t index, uint64_t now_ns) {
  Rail& rail = rails_[index];
  if (!rail.has_stream()) {
    return false;
  }
  const auto room = link_.input(index);
  const ssize_t count = rail.stream.is_socket ? recv(rail.stream.in.get(), room.data(), room.size(), MSG_DONTWAIT)
                                              : ::read(rail.stream.in.get(), room.data(), room.size());
  if (count > 0) {
    link_.received(index, static_cast<size_t>(count));
    return true;
  }
  if (count == 0 || !is_only_busy(errno)) {
    close(index, now_ns);
  }
  return false;
}

bool StreamEndpoint::write(size_t index, uint64_t now_ns) {
  Rail& rail = rails_[index];
  bool has_written = false;
  while (rail.has_stream() && !link_.output(index).empty()) {
    const auto bytes = link_.output(index);
    const size_t most = rail.stream.is_in_packets ? link_.output_frame_bytes(index) : bytes.size();
    const ssize_t count = write_some(rail.stream, bytes.first(most));
    if (count > 0) {
      link_.written(index, static_cast<size_t>(count));
      has_written = true;
    } else if (count < 0 && is_only_busy(errno)) {
      watch(rail, true);
      return has_written;
    } else {
      close(index, now_ns);
    }
  }
  if (rail.has_stream()) {
    watch(rail, false);
  }
  return has_written;
}

void StreamEndpoint::flush(uint64_t now_ns) {
  bool has_written = true;
  while (has_written) {
    link_.distribute(now_ns);
    has_written = false;
    for (size_t index = 0; index < rails_.size(); ++index) {
      has_written |= write(index, now_ns);
    }
  }
  set_timer(now_ns);
}

void StreamEndpoint::finish_turn(uint64_t now_ns) {
  link_.tick(now_ns);
  for (size_t index = 0; index < rails_.size(); ++index) {
    Rail& rail = rails_[index];
    if (link_.state(index) == StreamSession::State::ready) {
      rail.retry_ns = kFirstRetryNs;
    }
    if (rail.has_stream() && link_.should_reopen(index) && rail.source->can_reopen()) {
      close(index, now_ns);
    }
  }
  flush(now_ns);
}

void StreamEndpoint::set_timer(uint64_t now_ns) {
  uint64_t deadline = std::min(link_.next_deadline_ns(), alarm_at_ns_);
  for (const Rail& rail : rails_) {
    if (!rail.has_stream() && !rail.is_gone && !rail.is_listening) {
      deadline = std::min(deadline, rail.retry_at_ns);
    }
  }
  // Later deadlines wait for the timer to find them: most of them move before they come.
  if (now_ns < timer_at_ns_ && timer_at_ns_ <= deadline) {
    return;
  }
  timer_at_ns_ = deadline;
  itimerspec when{};  // zero takes the timer off
  if (deadline != UINT64_MAX) {
    const uint64_t at_ns = std::max<uint64_t>(deadline, 1);
    when.it_value.tv_sec = static_cast<time_t>(at_ns / 1'000'000'000);
    when.it_value.tv_nsec = static_cast<long>(at_ns % 1'000'000'000);
  }
  timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);  // also makes it unreadable again
}

void StreamEndpoint::leave(uint64_t now_ns) {
  flush(now_ns);
  link_.leave(now_ns);
  for (size_t index = 0; index < rails_.size(); ++index) {
    write(index, now_ns);
    drop_stream(rails_[index]);
    rails_[index].is_gone = true;
    watch_listener(rails_[index], false);
  }
}

void StreamEndpoint::abandon_after_fork() {
  epoll_.reset();  // first: what is taken off it here would be taken off the parent's
  timer_.reset();
  for (Rail& rail : rails_) {
    rail.stream = {};
    rail.is_gone = true;
  }
}

}  // namespace ringbolt::link
