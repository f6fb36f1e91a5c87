#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/adaptive_mutex.h"
#include "base/result.h"
#include "link/mark_set.h"
#include "link/shared_segment.h"

/// What a process shares with its peers about its completion queues, so that a peer that has something for one of them
/// marks the queue pair in it, and wakes its program, itself. Layout and protocol: docs/formats/wake-table.md.
namespace ringbolt::link {

inline constexpr uint32_t kWakeQueues = 1U << 16U;
inline constexpr uint32_t kWakeChannels = 1U << 14U;
inline constexpr uint32_t kWakeSets = 1U << 10U;
inline constexpr uint32_t kNoWakeChannel = UINT32_MAX;

/// What a completion queue waits for, see ibv_req_notify_cq. The lower three bits of `WakeQueue::notify`.
enum class Notify : uint32_t {
  nothing = 0,
  solicited = 1,
  next = 2,
  rung = 3,    ///< a peer has rung its channel; its process has not looked at that yet
  raised = 4,  ///< the event was raised before its completion was seen here
};
inline constexpr uint32_t kNotifyBits = 3;
inline constexpr uint32_t kNotifyMask = (1U << kNotifyBits) - 1;
inline Notify notify_of(uint32_t word) { return static_cast<Notify>(word & kNotifyMask); }
inline bool is_armed(Notify notify) { return notify == Notify::solicited || notify == Notify::next; }

// Bits of `WakeQueue::mode`.
inline constexpr uint32_t kWakeIsArmed = 1;   ///< it has been armed before: look at `notify`, after a full fence
inline constexpr uint32_t kWakeSetShift = 1;  ///< above: number of its set of marks, plus one; 0: it looks at all

/// One completion queue. `notify`: Notify, and above it the generation, which changes when the place is given to
/// another queue: a peer that is late changes nothing then. `mode` changes once or twice in the life of a queue.
/// All but `notify` have one writer, the owner. Peers may write to all of it all the same: it is mapped for that.
struct alignas(128) WakeQueue {
  std::atomic<uint32_t> mode;
  std::atomic<uint32_t> notify;
  std::atomic<uint32_t> channel;  ///< index of the channel that it announces itself at; kNoWakeChannel: none
  std::atomic<uint32_t> place;    ///< its bit in that channel's `rung`, modulo 64
  std::atomic<uint32_t> busy;     ///< the place in its set, plus one, that it looks at without marks; 0: none
};
static_assert(sizeof(WakeQueue) == 128);

/// One completion channel: which of its queues a peer has rung it for, before it wrote to the descriptor.
struct alignas(64) WakeChannel {
  std::atomic<uint64_t> rung;
};

struct WakeMemory {
  MarkSet service;          ///< completion queues that the service thread shall look at, modulo kMarks
  MarkSet sets[kWakeSets];  ///< queue pairs that have something for their completion queue, by their place in it
  WakeQueue queues[kWakeQueues];
  WakeChannel channels[kWakeChannels];
};
inline constexpr size_t kWakeBytes = sizeof(WakeMemory);

/// How a peer knows a completion queue. Generation 0 is nobody's.
struct WakeName {
  uint32_t index = 0;
  uint32_t generation = 0;
  friend bool operator==(const WakeName&, const WakeName&) = default;
};

/// The owner's side: gives places out. Thread-safe.
/// Owned by the process; peers' mappings are their own, and may outlive it. Its lock is a leaf.
class WakeTable {
 public:
  /// Makes the shared memory. Fails with ENOMEM, EMFILE. Call once, first.
  base::Result<int> create();
  int descriptor() const { return segment_.descriptor(); }
  MarkSet& service() { return memory().service; }
  /// In a forked child: the parent's, and nothing is given back.
  void abandon_after_fork() { is_abandoned_.store(true, std::memory_order_relaxed); }

  /// A place for a completion queue that announces itself at `channel`, as its `place`-th user. ENOMEM.
  /// Throws std::bad_alloc.
  base::Result<WakeName> add_queue(uint32_t channel, uint32_t place);
  void remove_queue(WakeName name);
  WakeQueue& queue(uint32_t index) { return memory().queues[index]; }
  /// A place for a channel; kNoWakeChannel when all are taken: peers wake its process' service thread instead.
  uint32_t add_channel();
  void remove_channel(uint32_t index);
  WakeChannel& channel(uint32_t index) { return memory().channels[index]; }
  /// An empty set of marks, for good: sets are few, and last as long as the queues that have many queue pairs. Nothing
  /// when all are taken.
  /// One that was in use before may hold marks that late peers have left in it: each costs a look. Throws
  /// std::bad_alloc.
  bool add_set(uint32_t& index);
  void remove_set(uint32_t index);
  MarkSet& set(uint32_t index) { return memory().sets[index]; }

 private:
  /// Which places are free. The last one given back is the next one taken: few pages are in use.
  class Places {
   public:
    explicit Places(uint32_t count) : count_(count) {}
    bool take(uint32_t& place);
    void give_back(uint32_t place);

   private:
    const uint32_t count_;
    uint32_t never_used_ = 0;
    std::vector<uint32_t> free_;  // has room for all that were given out: giving back needs no memory
  };

  WakeMemory& memory() { return *reinterpret_cast<WakeMemory*>(segment_.data()); }

  SharedSegment segment_;
  std::atomic<bool> is_abandoned_{false};
  base::AdaptiveMutex lock_;
  Places queues_ RINGBOLT_GUARDED_BY(lock_){kWakeQueues};
  Places channels_ RINGBOLT_GUARDED_BY(lock_){kWakeChannels};
  Places sets_ RINGBOLT_GUARDED_BY(lock_){kWakeSets};
};

}  // namespace ringbolt::link
