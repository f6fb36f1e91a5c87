#pragma once

#include <atomic>
#include <cstdint>

#include "device/half_locks.h"
#include "device/memory.h"
#include "device/send_request.h"

namespace ringbolt::device {

class SendQueue;

/// The requests of a send queue that bind and invalidate memory windows: they concern nobody's memory but ours, and no
/// transport. A window's old key may be in use by a peer at that moment, and the queue waits until it is not: the
/// service thread finds out when, since the queue holds locks that come after those that it takes.
/// Part of a send queue. At most one key is waited for at a time: what is behind it in the queue waits, too.
class WindowRequests {
 public:
  /// True: the request is done with, well or badly. False: it waits.
  bool execute(SendQueue& queue, SendEntry& entry, const SendRequest& request) RINGBOLT_REQUIRES(send_half);

  // For the service thread, without locks.
  /// The key that the queue waits for; 0: none.
  uint32_t draining_key() const { return draining_key_.load(std::memory_order_seq_cst); }
  /// Who has not let go of it by then is taken to be stopped.
  uint64_t drain_until_ns() const { return drain_until_ns_.load(std::memory_order_relaxed); }
  /// Nobody uses `key` any more. False: it is not what is waited for.
  bool end_drain(uint32_t key) RINGBOLT_REQUIRES(send_half);
  void reset() { draining_key_.store(0); }

 private:
  std::atomic<uint32_t> draining_key_{0};
  // CLOCK_MONOTONIC. Stored before the key, whose store releases it.
  std::atomic<uint64_t> drain_until_ns_{0};
};

}  // namespace ringbolt::device
