#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <span>

#include "base/unique_fd.h"
#include "link/peer_socket.h"

namespace ringbolt::link {

/// What an event is about.
enum class Source : uint64_t { listener, bell, retry_timer, line, process, watched };

/// The epoll set of a rendezvous and its retry timer. Thread-safe; one thread waits.
class PeerEvents {
 public:
  /// Throws base::Error.
  PeerEvents();

  /// Reports when `fd` is readable. `id` tells lines from lines and processes from processes. False: the kernel
  /// refuses (errno).
  bool add(int fd, Source source, uint64_t id);
  /// Before the descriptor is closed: a copy in a forked child would keep it in the set.
  void remove(int fd);
  /// For the socket of line `id`.
  Watch watch_of_line(uint64_t id) const;
  /// Fills `events`, waiting up to timeout_ms (-1: for ever). Returns how many; 0 also after a signal.
  size_t wait(std::span<epoll_event> events, int timeout_ms);
  /// wait() would return at once.
  bool has_pending() const;
  /// The retry timer's event was seen.
  void acknowledge_retry();

  static Source source_of(const epoll_event& event);
  static uint64_t id_of(const epoll_event& event);

  void abandon_after_fork();

 private:
  base::UniqueFd epoll_;
  base::UniqueFd retry_timer_;
};

}  // namespace ringbolt::link
