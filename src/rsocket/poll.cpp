#include "rsocket/poll.h"

#include <span>

#include "rsocket/settings.h"

namespace ringbolt::rsocket {
namespace {

/// One call of poll(): the program's descriptors, and which of them are sockets of ours.
/// Holds shares of the sockets: another thread's rclose() does not destroy them meanwhile.
class Waiting {
 public:
  Waiting(const DescriptorTable& table, std::span<pollfd> waits) : waits_(waits) {
    sockets_.reserve(waits.size());
    for (const pollfd& wait : waits) {
      sockets_.push_back(table.find(wait.fd));
      has_plain_ = has_plain_ || sockets_.back() == nullptr;
    }
  }

  /// What holds now. Returns for how many.
  base::Result<int> look() {
    const auto plain = look_at_plain();
    if (!plain) {
      return plain;
    }
    int count = *plain;
    for (size_t i = 0; i < waits_.size(); ++i) {
      if (sockets_[i] != nullptr) {
        waits_[i].revents = sockets_[i]->poll(waits_[i].events);
        count += waits_[i].revents != 0 ? 1 : 0;
      }
    }
    return count;
  }

  /// Sleeps until there may be something, or `deadline` bounds it. EINTR: a signal came.
  base::Result<void> sleep(Sleeper& sleeper, const Deadline& deadline) {
    std::vector<pollfd>& descriptors = sleeper.scratch();
    descriptors.clear();
    size_t begun = 0;
    bool is_ready = false;
    for (; begun < waits_.size() && !is_ready; ++begun) {
      if (sockets_[begun] == nullptr) {
        descriptors.push_back({waits_[begun].fd, waits_[begun].events, 0});
      } else {
        is_ready = sockets_[begun]->begin_sleep(waits_[begun].events, sleeper, descriptors) != 0;
      }
    }
    // The one that was ready has not begun to sleep.
    const size_t asleep = is_ready ? begun - 1 : begun;
    bool is_interrupted = false;
    if (!is_ready) {
      is_interrupted = sleeper.sleep(descriptors, deadline) < 0 && errno == EINTR;
    }
    for (size_t i = 0; i < asleep; ++i) {
      if (sockets_[i] != nullptr) {
        sockets_[i]->end_sleep(sleeper);
      }
    }
    return is_interrupted ? base::fail(EINTR) : base::Result<void>{};
  }

 private:
  /// All of them in one system call; ours are masked as negative, which poll() passes over.
  base::Result<int> look_at_plain() {
    if (!has_plain_) {
      return 0;
    }
    plain_.assign(waits_.begin(), waits_.end());
    for (size_t i = 0; i < waits_.size(); ++i) {
      plain_[i].fd = sockets_[i] == nullptr ? waits_[i].fd : -1;
      plain_[i].revents = 0;
    }
    const int count = ::poll(plain_.data(), plain_.size(), 0);
    if (count < 0) {
      return base::fail(errno);
    }
    for (size_t i = 0; i < waits_.size(); ++i) {
      waits_[i].revents = plain_[i].revents;
    }
    return count;
  }

  std::span<pollfd> waits_;
  std::vector<std::shared_ptr<Socket>> sockets_;
  std::vector<pollfd> plain_;
  bool has_plain_ = false;
};

/// As poll(), until `deadline`.
base::Result<int> poll_until(const DescriptorTable& table, std::span<pollfd> waits, const Deadline& deadline) {
  const uint64_t spin_until_ns = base::now_ns() + default_spin_ns();
  Waiting waiting(table, waits);
  Sleeper& sleeper = Sleeper::of_this_thread();
  for (;;) {
    const auto ready = waiting.look();
    if (!ready || *ready > 0 || deadline.is_over()) {
      return ready;
    }
    if (base::now_ns() < spin_until_ns) {
      continue;
    }
    const auto slept = waiting.sleep(sleeper, deadline);
    if (!slept) {
      return base::fail(slept.error().value);
    }
  }
}

}  // namespace

base::Result<int> poll_all(const DescriptorTable& table, pollfd* waits, nfds_t count, int timeout_ms) {
  if (waits == nullptr && count > 0) {
    return base::fail(EFAULT);
  }
  return poll_until(table, {waits, count}, Deadline::in_ms(timeout_ms));
}

base::Result<int> select_all(const DescriptorTable& table, int limit, fd_set* readable, fd_set* writable,
                             fd_set* exceptional, const timeval* timeout) {
  if (limit < 0 || limit > FD_SETSIZE || (timeout != nullptr && (timeout->tv_sec < 0 || timeout->tv_usec < 0))) {
    return base::fail(EINVAL);
  }
  std::vector<pollfd> waits;
  for (int fd = 0; fd < limit; ++fd) {
    int events = 0;
    events |= readable != nullptr && FD_ISSET(fd, readable) ? POLLIN : 0;
    events |= writable != nullptr && FD_ISSET(fd, writable) ? POLLOUT : 0;
    events |= exceptional != nullptr && FD_ISSET(fd, exceptional) ? POLLPRI : 0;
    if (events != 0) {
      waits.push_back({fd, static_cast<short>(events), 0});
    }
  }
  const auto ready = poll_until(table, waits, Deadline::of_select(timeout));
  if (!ready) {
    return ready;
  }
  for (const pollfd& wait : waits) {
    if ((wait.revents & POLLNVAL) != 0) {
      // As select(2) has it of a descriptor that is not open.
      return base::fail(EBADF);  // the sets stay as they are
    }
  }
  int count = 0;
  const auto answer = [&](fd_set* set, int asked, int meant) {
    if (set == nullptr) {
      return;
    }
    FD_ZERO(set);
    for (const pollfd& wait : waits) {
      if ((wait.events & asked) != 0 && (wait.revents & meant) != 0) {
        FD_SET(wait.fd, set);
        ++count;
      }
    }
  };
  answer(readable, POLLIN, POLLIN | POLLHUP | POLLERR);
  answer(writable, POLLOUT, POLLOUT | POLLERR);
  answer(exceptional, POLLPRI, POLLPRI);
  return count;
}

}  // namespace ringbolt::rsocket
