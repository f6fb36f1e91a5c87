#pragma once

#include <atomic>
#include <cstdint>

namespace ringbolt::link {

class StreamLink;

/// What a link's owner tells others of it: whether its peer is there, and since when nothing gets through. Between
/// interruption and recovery the link keeps what it was given, so whoever waits for an answer should not count that
/// time; but not for ever. update() under its owner's lock, the rest from any thread.
class StreamHealth {
 public:
  struct Limits {
    uint64_t grace_ns = 500'000'000;      ///< a peer that was there is gone after so long without a ready rail
    uint64_t outage_ns = 5'000'000'000U;  ///< the longest interruption that counts as one
  };
  StreamHealth() : StreamHealth(Limits()) {}
  explicit StreamHealth(const Limits& limits) : limits_(limits) {}

  /// Looks at the link after anything has happened to it, and at next_deadline_ns().
  void update(const StreamLink& link, uint64_t now_ns);
  uint64_t next_deadline_ns() const;

  /// The peer was there, and is gone: it has said goodbye, or no rail has led to it for the grace time. A peer that has
  /// not come yet is late, not gone.
  bool is_gone() const { return is_gone_.load(std::memory_order_relaxed); }
  /// A clock that waits for the peer's answers may leave out what lies before this time: now while nothing gets
  /// through, the end of the last interruption otherwise, and never more than the longest outage after it began. 0:
  /// there was none. A peer that says goodbye interrupts nothing: it has ended.
  uint64_t excused_until_ns(uint64_t now_ns) const;

 private:
  uint64_t end_of(uint64_t since_ns, uint64_t now_ns) const;

  const Limits limits_;
  // Each written under the owner's lock. Relaxed: who reads two of them at different moments excuses a little more or
  // less.
  std::atomic<bool> is_gone_{false};
  std::atomic<uint64_t> down_since_ns_{0};     // no rail is ready, though the peer was there and has not left
  std::atomic<uint64_t> waiting_since_ns_{0};  // the last acknowledgement; 0: none is awaited
  std::atomic<uint64_t> excused_until_ns_{0};  // the end of the last interruption
  uint64_t not_up_since_ns_ = 0;
};

}  // namespace ringbolt::link
