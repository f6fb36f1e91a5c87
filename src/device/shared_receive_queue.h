#pragma once

#include <infiniband/verbs.h>

#include <memory>
#include <vector>

#include "base/adaptive_mutex.h"
#include "base/result.h"
#include "device/memory.h"
#include "device/queue_pair_notes.h"
#include "device/receive_ring.h"

namespace ringbolt::device {

/// Receives that several queue pairs take from. Thread-safe.
/// Its lock is a leaf, taken under those of queue pairs; the event of its limit is raised without it. It ends when no
/// queue pair is attached any more (`users`), and counts as a user of its domain, which outlives it.
class SharedReceiveQueue {
 public:
  /// EINVAL for a depth or a number of pieces out of range; ENOMEM.
  static base::Result<std::unique_ptr<SharedReceiveQueue>> create(ProtectionDomain& pd, const ibv_srq_attr& attributes);
  ~SharedReceiveQueue() { pd_.users.fetch_sub(1, std::memory_order_relaxed); }
  SharedReceiveQueue(const SharedReceiveQueue&) = delete;
  SharedReceiveQueue& operator=(const SharedReceiveQueue&) = delete;

  void* handle = nullptr;          ///< the C object, for events
  std::atomic<uint32_t> users{0};  ///< queue pairs attached

  ProtectionDomain& pd() const { return pd_; }
  ibv_srq_attr query();
  /// As ibv_modify_srq: a new depth, or a limit under which one event is announced.
  /// 0, or EINVAL and nothing has changed. Throws std::bad_alloc, likewise.
  int modify(const ibv_srq_attr& attributes, int mask);
  /// As ibv_post_srq_recv: 0, EINVAL, ENOMEM when it is full; `*bad` then names the first that was not taken.
  int post(ibv_recv_wr* wr, ibv_recv_wr** bad);
  /// RINGBOLT_EXPLAIN: the same, with notes of whence they come.
  int post_noted(ibv_recv_wr* wr, ibv_recv_wr** bad, const ReceivePosting& from);
  /// The newest that was posted under that number; without a site: it is not known.
  NotedReceive noted(uint64_t wr_id);
  /// Of posted receives that no message has taken.
  uint32_t count();

  /// Takes the oldest receive and copies its pieces out (at most kMaxSge). False when there is none; where the program
  /// may sleep meanwhile (`is_awaited`), the service thread looks again after the next post.
  bool take(uint64_t& wr_id, ibv_sge* pieces, uint32_t& count, bool is_awaited);

 private:
  SharedReceiveQueue(ProtectionDomain& pd, uint32_t depth, uint32_t max_sge) : pd_(pd), ring_(depth, max_sge) {
    pd_.users.fetch_add(1, std::memory_order_relaxed);
  }

  ProtectionDomain& pd_;
  base::AdaptiveMutex lock_;
  ReceiveRing ring_ RINGBOLT_GUARDED_BY(lock_);
  struct Noted {
    uint64_t wr_id = 0;  // the device's
    NotedReceive receive{};
  };
  std::vector<Noted> noted_ RINGBOLT_GUARDED_BY(lock_);  // the newest, around the end; empty: nobody explains
  size_t next_noted_ RINGBOLT_GUARDED_BY(lock_) = 0;
  uint32_t limit_ RINGBOLT_GUARDED_BY(lock_) = 0;       // 0: not armed
  bool is_wanting_ RINGBOLT_GUARDED_BY(lock_) = false;  // a message waits for a receive, and perhaps nobody polls
};

}  // namespace ringbolt::device
