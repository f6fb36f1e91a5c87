#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "base/unique_fd.h"
#include "link/socket.h"

namespace ringbolt::link {

/// Beyond this many unsent messages the other end is taken for broken.
inline constexpr size_t kMaxQueuedMessages = 16384;

/// Where a socket reports: the epoll instance, the key of its events there, and a timer to try again later.
struct Watch {
  int epoll_fd = -1;
  uint64_t key = 0;
  int retry_timer_fd = -1;
};

/// One connected socket with the queue of what it did not take yet. The descriptor stays open until destruction, so
/// that a thread in the middle of a call never meets a foreign file. Thread-safe, except that one thread receives.
/// Shared by its line and its peer. Its lock is a leaf, held over system calls that do not wait, but in flush_until().
class PeerSocket {
 public:
  PeerSocket(base::UniqueFd fd, const Watch& watch);
  ~PeerSocket();
  PeerSocket(const PeerSocket&) = delete;
  PeerSocket& operator=(const PeerSocket&) = delete;

  /// Reports events from now on. False when epoll refuses (ENOMEM, ENOSPC).
  bool watch();
  /// Reports nothing, not even the end, until watch(). What is queued is still sent.
  void unwatch();

  Received receive(Datagram& datagram) { return receive_datagram(fd_.get(), datagram); }

  /// Sends now or queues, with copies of the descriptors; keeps the order. False when the other end is closed or the
  /// queue is full; then the end is reported to the watch.
  bool send(std::span<const std::byte> bytes, std::span<const int> descriptors);
  /// Sends what the socket takes now.
  void flush();
  /// flush() until nothing is queued or `deadline_ns` (base::now_ns) is over.
  void flush_until(uint64_t deadline_ns);

  /// Ends the connection for both sides, also where a forked child holds a copy of the descriptor.
  void end();
  /// In a forked child: closes the descriptor without a word to the other end.
  void abandon_after_fork();

 private:
  struct Queued {
    std::vector<std::byte> bytes;
    std::vector<base::UniqueFd> descriptors;
  };
  bool enqueue(std::span<const std::byte> bytes, std::span<const int> descriptors) RINGBOLT_REQUIRES(mutex_);
  void flush_locked() RINGBOLT_REQUIRES(mutex_);
  void ask_for_retry(int error) RINGBOLT_REQUIRES(mutex_);
  void watch_output(bool is_wanted) RINGBOLT_REQUIRES(mutex_);
  bool break_off() RINGBOLT_REQUIRES(mutex_);

  base::UniqueFd fd_;
  const Watch watch_;
  const pid_t owner_;  // in a forked child everything here belongs to the parent
  base::Mutex mutex_;
  std::deque<Queued> queue_ RINGBOLT_GUARDED_BY(mutex_);
  bool is_watched_ RINGBOLT_GUARDED_BY(mutex_) = false;
  bool is_output_watched_ RINGBOLT_GUARDED_BY(mutex_) = false;
  bool is_ended_ RINGBOLT_GUARDED_BY(mutex_) = false;
};

}  // namespace ringbolt::link
