#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/calling_place.h"
#include "base/mutex.h"
#include "device/event_count.h"
#include "link/wake_table.h"

namespace ringbolt::device {

class CompletionQueue;
class WakeEntry;

/// For RINGBOLT_EXPLAIN: threads that wait at a channel, or poll a queue in vain, and where. Thread-safe.
struct Waiters {
  std::atomic<uint32_t> now{0};       ///< in ibv_get_cq_event
  std::atomic<uint64_t> waits{0};     ///< so far, or empty polls
  std::atomic<uint64_t> answers{0};   ///< polls that were not empty
  std::atomic<uintptr_t> returns{0};  ///< where the poll returned whose place is noted
  std::array<std::atomic<uintptr_t>, 3> site{};

  /// Whether the place of a poll, which has found `got` and returns there, is to be noted: of one that spins it is
  /// known. What lies behind the place where it returns may change without it: 1 of 64 is noted in any case.
  bool wants_site(int got, const void* returns_to) const {
    constexpr uint64_t kOneOf = 64;
    return got == 0 && (waits.load(std::memory_order_relaxed) % kOneOf == 0 ||
                        returns.load(std::memory_order_relaxed) != reinterpret_cast<uintptr_t>(returns_to));
  }
  /// An empty poll, or a wait, from there.
  void note(const base::CallSite& from, const void* returns_to = nullptr) {
    returns.store(reinterpret_cast<uintptr_t>(returns_to), std::memory_order_relaxed);
    for (size_t i = 0; i < site.size(); ++i) {
      site[i].store(from.returns[i], std::memory_order_relaxed);
    }
    count(waits);
  }
  /// Any other poll.
  void note_poll(int got) { count(got == 0 ? waits : answers); }
  /// Not as one step: of two threads that poll at once one may count for both, which leaves it a queue that is polled.
  static void count(std::atomic<uint64_t>& polls) {
    polls.store(polls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  base::CallSite last_site() const {
    base::CallSite last;
    for (size_t i = 0; i < site.size(); ++i) {
      last.returns[i] = site[i].load(std::memory_order_relaxed);
    }
    return last;
  }
};

/// Where armed completion queues announce themselves: a queue with a descriptor that is readable while it holds
/// something. One announcement per arming, by who completes something here, or by a peer, who writes to the descriptor
/// himself (link/peer_queue.h). Thread-safe.
/// Owns its descriptor, which offers hand to peers: theirs are copies, and outlive it. Its lock is a leaf, and is taken
/// under those of completion queues. Completion queues must retire() before it ends.
class CompletionChannel {
 public:
  /// `table` must outlive it. Throws base::Error.
  explicit CompletionChannel(link::WakeTable& table);
  ~CompletionChannel();
  CompletionChannel(const CompletionChannel&) = delete;
  CompletionChannel& operator=(const CompletionChannel&) = delete;

  /// Of its own life: a queue may ask after the channel is gone.
  const std::shared_ptr<Waiters>& waiters() const { return waiters_; }
  /// Of an eventfd that counts as a semaphore; programs may make it non-blocking.
  int descriptor() const { return count_.descriptor(); }
  /// No other channel of this process has had it, or will have: by it peers tell channels from one another. Not 0.
  uint32_t number() const { return number_; }
  /// Its place in the wake table, or kNoWakeChannel.
  uint32_t index() const { return index_; }

  /// One completion queue more announces itself here: its place. set_user() before the first announcement. Throws
  /// std::bad_alloc.
  uint32_t add_user();
  void set_user(uint32_t place, const std::shared_ptr<WakeEntry>& user);
  /// `is_rung`: a peer has rung for it, which nobody has taken, and nobody will.
  void remove_user(uint32_t place, bool is_rung);
  /// Makes room for an announcement of every user, beside those that wait, and for one more: each announces itself once
  /// an arming, and calls this before; at that, the one of the arming before may have to be announced as well. Throws
  /// std::bad_alloc.
  void make_room();
  /// Only with the room that make_room() has made, so that it needs no memory. At most one system call.
  void push(CompletionQueue* queue) noexcept;
  /// The same for a queue that a peer has rung for, or is about to: the count is the peer's.
  void push_uncounted(CompletionQueue* queue) noexcept;
  /// The oldest announcement. Blocks until there is one, unless the descriptor is non-blocking: then EAGAIN.
  /// `note` hears of it before a forget() of that queue can return, and must not call back.
  /// 0, EAGAIN or EINTR. Several threads may wait at a time. `queue` stays alive as long as the program does not
  /// destroy it: ibv_destroy_cq waits until its events are acknowledged.
  int take(CompletionQueue*& queue, void (*note)(CompletionQueue&));
  /// Drops the announcements of a queue that is being destroyed.
  void forget(const CompletionQueue* queue);
  /// A peer is gone, perhaps between its announcement and its count.
  /// Too many counts cost a look each that finds nothing; one too few would leave a program asleep.
  void count_again();

 private:
  /// Takes in the announcements of peers.
  void collect();

  const std::shared_ptr<Waiters> waiters_ = std::make_shared<Waiters>();
  link::WakeTable& table_;
  EventCount count_{"completion channel"};  // of what is in queue_, or will be: every one is a fresh edge for epoll
  const uint32_t number_;
  const uint32_t index_;
  base::Mutex mutex_;
  std::vector<CompletionQueue*> queue_ RINGBOLT_GUARDED_BY(mutex_);
  std::vector<std::weak_ptr<WakeEntry>> users_ RINGBOLT_GUARDED_BY(mutex_);  // by place
  std::vector<uint32_t> free_places_ RINGBOLT_GUARDED_BY(mutex_);            // has room for all
};

}  // namespace ringbolt::device
