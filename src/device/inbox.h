#pragma once

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/adaptive_mutex.h"
#include "link/udp_buffer.h"
#include "transport/seal.h"
#include "wire/flow.h"
#include "wire/packet.h"

namespace ringbolt::device {

/// A packet from the network for one queue pair: parsed, its ICRC checked. An acknowledgement that another packet
/// carried is one without a buffer.
struct InboundPacket {
  wire::PacketView view;  ///< points into `buffer`
  wire::Flow flow;
  link::UdpBufferRef buffer;
};

/// Packets that wait until their queue pair gets to them: whoever reads the socket must not take the locks of a queue
/// pair that another thread is at. Bounded: what finds no room is lost, as on a network. Thread-safe.
/// Those who read sockets push, who holds the lock of that half pops. Its lock is a leaf, held for a few instructions.
/// Memory that it has grown to stays until it ends.
class Inbox {
 public:
  static constexpr size_t kMaxPackets = 8192;
  /// Packets in large buffers, which are fewer, find room among the first so many.
  static constexpr size_t kMaxLargePackets = 1024;

  /// Without the lock: who marks the queue pair after push() makes sure that somebody looks again.
  bool is_empty() const { return count_.load(std::memory_order_acquire) == 0; }

  /// False when it is full.
  /// Then `packet` is as it was. Throws std::bad_alloc where it has to grow: likewise.
  bool push(InboundPacket&& packet) {
    const base::LockGuard guard(lock_);
    const size_t count = count_.load(std::memory_order_relaxed);
    const bool is_small =
        !packet.buffer.is_held() || packet.buffer.get()->capacity() <= link::UdpBufferPool::kSmallBytes;
    if (count >= (is_small ? kMaxPackets : kMaxLargePackets)) {
      return false;
    }
    if (count == ring_.size()) {
      grow();
    }
    place(count) = std::move(packet);
    count_.store(count + 1, std::memory_order_release);
    return true;
  }

  /// False when there is none.
  bool pop(InboundPacket& packet) {
    return pop_if(packet, [](const InboundPacket&) { return true; });
  }
  /// False when there is none, or the first is not wanted: then it stays.
  /// `is_wanted` is called under the lock, and must not call back.
  template <class Wanted>
  bool pop_if(InboundPacket& packet, Wanted is_wanted) {
    if (is_empty()) {
      return false;
    }
    const base::LockGuard guard(lock_);
    const size_t count = count_.load(std::memory_order_relaxed);
    if (count == 0 || !base::call_locked(is_wanted, ring_[first_])) {
      return false;
    }
    packet = std::move(ring_[first_]);
    first_ = (first_ + 1) & (ring_.size() - 1);
    count_.store(count - 1, std::memory_order_release);
    return true;
  }

  void clear() {
    InboundPacket packet;
    while (pop(packet)) {
    }
  }

 private:
  InboundPacket& place(size_t i) RINGBOLT_REQUIRES(lock_) { return ring_[(first_ + i) & (ring_.size() - 1)]; }
  void grow() RINGBOLT_REQUIRES(lock_) {
    std::vector<InboundPacket> grown(ring_.empty() ? 8 : ring_.size() * 2);
    for (size_t i = 0; i < ring_.size(); ++i) {
      grown[i] = std::move(place(i));
    }
    ring_ = std::move(grown);
    first_ = 0;
  }

  base::AdaptiveMutex lock_;
  std::vector<InboundPacket> ring_ RINGBOLT_GUARDED_BY(lock_);  // a power of two, or none: no division per packet
  size_t first_ RINGBOLT_GUARDED_BY(lock_) = 0;
  std::atomic<size_t> count_{0};
};

/// Both directions of one queue pair, and what keeps strangers out of them.
struct Inboxes {
  Inbox requests;  ///< for the responder; of a UD queue pair: all
  Inbox answers;   ///< for the requester, and greetings
  transport::Seal seal;
  // Released when places in completion queues and the seal are there, acquired by who brings a packet.
  std::atomic<bool> is_open{false};  ///< somebody is there to take packets: from RTR on
};

}  // namespace ringbolt::device
