#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "device/connection_record.h"
#include "wire/cm_message.h"
#include "wire/mad.h"

namespace ringbolt::device {

/// Ends the connections that dead processes of this host have left: each one that they had over a network by a DREQ,
/// as a kernel does for a process that dies. Every process with ports on interfaces has one; who takes a record is
/// decided by its lock, and if that one dies over it, the next one has all of it. Driven by the service thread; what
/// others may call says so.
class Orphans {
 public:
  enum class Sent : uint8_t { yes, not_from_here };
  /// Sends a datagram on behalf of the entry's owner; `not_from_here`: none of our ports has its address.
  using Sender = std::function<Sent(const RecordEntry& from, wire::MadIn mad)>;

  Orphans(std::string directory, uint64_t network, Sender sender);

  /// Somebody may have died: the records are looked at soon. Thread-safe, no system call.
  void suspect() { next_ns_.store(0, std::memory_order_seq_cst); }
  /// When on_timer() has something to do. Thread-safe.
  uint64_t next_deadline_ns() const { return next_ns_.load(std::memory_order_relaxed); }
  /// Service thread only. Reads the folder when suspicions are due, and sends: system calls, but no waiting.
  void on_timer(uint64_t now_ns);
  /// The peer of a connection that is nobody's any more agrees to its end. Thread-safe.
  void on_answer(const wire::CmDrep& answer) RINGBOLT_EXCLUDES(mutex_);
  /// In a forked child: the records are its parent's to act on, and must be free if that one dies.
  void abandon_after_fork() RINGBOLT_NOT_ANALYSED { duties_.clear(); }

 private:
  struct Ending {
    RecordEntry entry;
    uint32_t tries = 0;
    uint64_t next_ns = 0;
    bool is_over = false;
  };
  struct Duty {
    OpenRecord record;  ///< the lock says that it is ours to act on
    std::vector<Ending> endings;
  };

  void look() RINGBOLT_EXCLUDES(mutex_);
  /// When there is more to send.
  uint64_t send_due(uint64_t now_ns) RINGBOLT_EXCLUDES(mutex_);

  const std::string directory_;
  const uint64_t network_;
  const Sender sender_;
  // 0: somebody is suspected. on_timer() takes it with an exchange, and puts its own back only where it finds none.
  std::atomic<uint64_t> next_ns_{UINT64_MAX};
  uint32_t looks_ = 0;  // since the last suspicion; service thread only, as the next
  uint64_t next_look_ns_ = UINT64_MAX;
  base::Mutex mutex_;
  std::vector<Duty> duties_ RINGBOLT_GUARDED_BY(mutex_);
};

}  // namespace ringbolt::device
