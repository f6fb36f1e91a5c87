#pragma once

#include <bitset>
#include <cstdint>
#include <optional>

#include "base/mutex.h"
#include "device/limits.h"

namespace ringbolt::device {

/// Gives the queue pairs of one process their numbers: (slot of the process << kQpnIndexBits) | index. Indices are
/// given out in turn, so that a number rests as long as can be before it names another queue pair: packets for the last
/// one may still be under way. Its lock is a leaf. Thread-safe.
class QueuePairNumbers {
 public:
  /// `first_index` is tried first, modulo kMaxQueuePairs. One that nobody can foretell, for a process that had the slot
  /// before may have peers that still send.
  QueuePairNumbers(uint32_t slot, uint32_t first_index) : slot_(slot), next_index_(first_index) {}

  /// Never 0 or 1, which are management's. Nothing: all are taken.
  std::optional<uint32_t> take() RINGBOLT_EXCLUDES(mutex_);
  /// Nobody has anything under the number any more. No effect when it is free.
  void give_back(uint32_t qpn) RINGBOLT_EXCLUDES(mutex_);

 private:
  const uint32_t slot_;
  base::Mutex mutex_;
  std::bitset<kMaxQueuePairs> is_taken_ RINGBOLT_GUARDED_BY(mutex_);
  // modulo kMaxQueuePairs
  uint32_t next_index_ RINGBOLT_GUARDED_BY(mutex_);
};

}  // namespace ringbolt::device
