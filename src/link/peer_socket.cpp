#include "link/peer_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <new>

#include "base/clock.h"
#include "base/lock_guard.h"

namespace ringbolt::link {
namespace {

constexpr long kRetryNs = 2'000'000;

/// The kernel will take the message later: its buffers are full, or too many descriptors are under way.
bool is_passing(int error) { return error == EAGAIN || error == ETOOMANYREFS || error == ENOBUFS || error == ENOMEM; }

}  // namespace

PeerSocket::PeerSocket(base::UniqueFd fd, const Watch& watch) : fd_(std::move(fd)), watch_(watch), owner_(getpid()) {}

PeerSocket::~PeerSocket() { end(); }

bool PeerSocket::watch() {
  const base::LockGuard lock(mutex_);
  if (is_ended_ || is_watched_) {
    return !is_ended_;
  }
  is_output_watched_ = !queue_.empty();
  epoll_event event{};
  event.events = EPOLLIN | (is_output_watched_ ? EPOLLOUT : 0U);
  event.data.u64 = watch_.key;
  is_watched_ = epoll_ctl(watch_.epoll_fd, EPOLL_CTL_ADD, fd_.get(), &event) == 0;
  return is_watched_;
}

void PeerSocket::unwatch() {
  const base::LockGuard lock(mutex_);
  if (is_watched_) {
    epoll_ctl(watch_.epoll_fd, EPOLL_CTL_DEL, fd_.get(), nullptr);
    is_watched_ = false;
    if (!queue_.empty()) {
      ask_for_retry(EAGAIN);
    }
  }
}

bool PeerSocket::send(std::span<const std::byte> bytes, std::span<const int> descriptors) {
  const base::LockGuard lock(mutex_);
  if (is_ended_) {
    return false;
  }
  if (!queue_.empty()) {
    return enqueue(bytes, descriptors);
  }
  const int error = send_datagram(fd_.get(), bytes, descriptors);
  if (error == 0) {
    return true;
  }
  // EBADF too: a program that becomes a daemon may have closed all descriptors, ours with them.
  if (!is_passing(error) || !enqueue(bytes, descriptors)) {
    return break_off();
  }
  ask_for_retry(error);
  return true;
}

bool PeerSocket::enqueue(std::span<const std::byte> bytes, std::span<const int> descriptors) try {
  if (queue_.size() >= kMaxQueuedMessages) {
    return break_off();
  }
  Queued queued;
  queued.bytes.assign(bytes.begin(), bytes.end());
  for (const int descriptor : descriptors) {
    base::UniqueFd copy(fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
    if (!copy.is_open()) {
      return break_off();  // out of descriptors: a lost message must not pass for a sent one
    }
    queued.descriptors.push_back(std::move(copy));
  }
  queue_.push_back(std::move(queued));
  return true;
} catch (const std::bad_alloc&) {
  return break_off();
}

void PeerSocket::flush() {
  const base::LockGuard lock(mutex_);
  flush_locked();
}

void PeerSocket::flush_locked() {
  while (!is_ended_ && !queue_.empty()) {
    const Queued& next = queue_.front();
    std::array<int, kMaxDescriptors> descriptors{};
    size_t count = 0;
    for (const base::UniqueFd& descriptor : next.descriptors) {
      descriptors[count++] = descriptor.get();
    }
    const int error = send_datagram(fd_.get(), next.bytes, {descriptors.data(), count});
    if (error == 0) {
      queue_.pop_front();
    } else if (is_passing(error)) {
      ask_for_retry(error);
      return;
    } else {
      break_off();
    }
  }
  watch_output(false);
}

void PeerSocket::flush_until(uint64_t deadline_ns) {
  constexpr uint64_t kNsPerMs = 1'000'000;
  const base::LockGuard lock(mutex_);
  flush_locked();
  for (uint64_t now = base::now_ns(); !queue_.empty() && now < deadline_ns; now = base::now_ns()) {
    pollfd wanted{fd_.get(), POLLOUT, 0};
    poll(&wanted, 1, static_cast<int>((deadline_ns - now) / kNsPerMs) + 1);
    flush_locked();
  }
}

/// By EPOLLOUT where that tells, else by the timer that all sockets share.
void PeerSocket::ask_for_retry(int error) {
  if (error == EAGAIN && is_watched_) {
    watch_output(true);
    return;
  }
  // The socket counts as writable though it refuses: EPOLLOUT would spin.
  watch_output(false);
  itimerspec when{};
  when.it_value.tv_nsec = kRetryNs;
  timerfd_settime(watch_.retry_timer_fd, 0, &when, nullptr);
}

void PeerSocket::watch_output(bool is_wanted) {
  if (!is_watched_ || is_output_watched_ == is_wanted) {
    return;
  }
  epoll_event event{};
  event.events = EPOLLIN | (is_wanted ? EPOLLOUT : 0U);
  event.data.u64 = watch_.key;
  if (epoll_ctl(watch_.epoll_fd, EPOLL_CTL_MOD, fd_.get(), &event) == 0) {
    is_output_watched_ = is_wanted;
  }
}

/// Nothing can be sent any more; the receiving thread reads what is left and sees the end. Always false.
bool PeerSocket::break_off() {
  queue_.clear();
  shutdown(fd_.get(), SHUT_RDWR);
  return false;
}

void PeerSocket::end() {
  if (getpid() != owner_) {
    return;
  }
  const base::LockGuard lock(mutex_);
  if (is_ended_) {
    return;
  }
  is_ended_ = true;
  queue_.clear();
  // While a forked child holds a copy, closing alone would leave the socket in the epoll set for ever.
  if (is_watched_) {
    epoll_ctl(watch_.epoll_fd, EPOLL_CTL_DEL, fd_.get(), nullptr);
    is_watched_ = false;
  }
  shutdown(fd_.get(), SHUT_RDWR);
}

void PeerSocket::abandon_after_fork() {
  fd_.reset();
  // The lock may belong to a thread that does not exist here; then the queue may be half changed, and its copies of
  // descriptors stay open until exec or exit.
  if (mutex_.try_lock()) {
    is_ended_ = true;
    queue_.clear();
    mutex_.unlock();
  }
}

}  // namespace ringbolt::link
