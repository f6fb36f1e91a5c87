#pragma once

#include <sched.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "base/lock_guard.h"
#include "base/mutex.h"
#include "device/limits.h"

namespace ringbolt::device {

class QueuePair;

/// The queue pairs of a process by the lower bits of their numbers, for who has a packet for one: no lock and no
/// reference count for a packet. Who removes one waits instead, until nobody reads any more who may have found it.
/// Thread-safe.
/// Of a number only the lower bits are looked at: the UDP endpoint hands over only packets for this process' slot.
class QueuePairTable {
 public:
  /// As long as it lives, what its thread finds stays. Its thread removes nothing meanwhile, and never waits for long.
  class Reading {
   public:
    explicit Reading(QueuePairTable& table)
        : readers_(table.readers_[table.turn_.load(std::memory_order_relaxed) & 1U].count) {
      readers_.fetch_add(1, std::memory_order_seq_cst);
    }
    ~Reading() { readers_.fetch_sub(1, std::memory_order_release); }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;

   private:
    std::atomic<uint32_t>& readers_;
  };

  /// Null: there is none. While the caller reads.
  // Sequentially consistent, all of them: a reader counts itself and then looks, who removes clears and then looks at
  // the count, and one of the two must see the other.
  QueuePair* find(uint32_t qpn) const { return place(qpn).load(std::memory_order_seq_cst); }
  /// When all of it is there, its places in completion queues too.
  void put(uint32_t qpn, QueuePair& qp) { place(qpn).store(&qp, std::memory_order_seq_cst); }
  /// Afterwards nobody has it from here.
  void remove(uint32_t qpn) RINGBOLT_EXCLUDES(removing_) {
    place(qpn).store(nullptr, std::memory_order_seq_cst);
    const base::LockGuard one_at_a_time(removing_);
    // Twice: a reader may have read the turn long ago and be counted under it only now. It finds what is there now; and
    // who was counted before the queue pair went is waited for in one of the two.
    for (int i = 0; i < 2; ++i) {
      const uint32_t before = turn_.fetch_add(1, std::memory_order_seq_cst);
      while (readers_[before & 1U].count.load(std::memory_order_seq_cst) != 0) {
        sched_yield();
      }
    }
  }

 private:
  std::atomic<QueuePair*>& place(uint32_t qpn) { return places_[qpn % kMaxQueuePairs]; }
  const std::atomic<QueuePair*>& place(uint32_t qpn) const { return places_[qpn % kMaxQueuePairs]; }

  struct alignas(128) Readers {
    std::atomic<uint32_t> count{0};
  };
  std::array<Readers, 2> readers_;  // those that began under an even turn, and under an odd one
  std::atomic<uint32_t> turn_{0};
  base::Mutex removing_;  // orders the changes of turn_
  std::array<std::atomic<QueuePair*>, kMaxQueuePairs> places_{};
};

}  // namespace ringbolt::device
