#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace ringbolt::link {

/// Bytes of the number in front of each packet.
inline constexpr size_t kStreamNumberBytes = 8;
inline constexpr size_t kMaxStreamPacketBytes = 4352 - kStreamNumberBytes;

/// Packets of a link that the other end has not acknowledged, numbered from 0: on some rail, or waiting for one. They
/// are kept as they travel, with the number in front. Memory: `packets` times kMaxStreamMessageBytes, from the system
/// as it is used. Not thread-safe. Hot path: no allocation.
/// Owned by a StreamLink.
class StreamSendWindow {
 public:
  /// `packets` is a power of two.
  explicit StreamSendWindow(uint32_t packets);

  bool is_full() const { return end_ - oldest_ == slots_.size(); }
  bool is_empty() const { return end_ == oldest_; }
  /// Where a packet of up to kMaxStreamPacketBytes may be written. Empty: the window is full.
  std::span<std::byte> reserve();
  void commit(size_t bytes);

  /// The lowest number that waits for a rail.
  std::optional<uint64_t> first_waiting() const;
  /// One that is not acknowledged; good until it is.
  std::span<const std::byte> message(uint64_t number) const;
  void on_assigned(uint64_t number);
  /// The rail it was on is gone: it waits again.
  void on_returned(uint64_t number);
  void on_acknowledged(uint64_t number);
  /// Drops everything and counts from 0 again.
  void reset();

  /// Packets that waited for a rail a second time.
  uint64_t returned_packets() const { return returned_packets_; }

 private:
  enum class Phase : uint8_t { waiting, assigned, acknowledged };
  struct Slot {
    uint32_t bytes = 0;
    Phase phase = Phase::waiting;
  };
  Slot& slot(uint64_t number) { return slots_[number & (slots_.size() - 1)]; }
  const Slot& slot(uint64_t number) const { return slots_[number & (slots_.size() - 1)]; }
  std::byte* place(uint64_t number) const;

  std::vector<Slot> slots_;
  std::unique_ptr<std::byte[]> memory_;
  uint64_t oldest_ = 0;  // not acknowledged
  uint64_t fresh_ = 0;   // never was on a rail, nor any behind it
  uint64_t end_ = 0;
  uint32_t returned_ = 0;  // of those before fresh_, how many wait
  uint64_t returned_packets_ = 0;
};

/// Puts packets that come over several rails back in order, and leaves out those that came before. Bounded like the
/// window of the other end. Not thread-safe.
/// Owned by a StreamLink. Numbers are the peer's word: what lies too far ahead is refused, so that memory is bounded.
class StreamOrder {
 public:
  explicit StreamOrder(uint32_t packets);

  enum class Verdict : uint8_t {
    next,       ///< hand it over now, then look at take()
    kept,       ///< others must come first
    duplicate,  ///< it came before
    beyond,     ///< no sender's window reaches so far
    no_memory,  ///< it would have to be kept, and was not
  };
  /// Allocates where a packet has to be kept at a place for the first time.
  Verdict offer(uint64_t number, std::span<const std::byte> packet);
  /// The next one that was kept, valid until the next call of anything. Nothing: it has not come yet.
  std::optional<std::span<const std::byte>> take();
  void reset();

  uint32_t kept_packets() const { return kept_; }

 private:
  struct Slot {
    std::unique_ptr<std::byte[]> packet;  // stays once it is made
    uint32_t bytes = 0;
    bool is_held = false;
  };
  std::vector<Slot> slots_;
  uint64_t next_ = 0;
  uint32_t kept_ = 0;
};

}  // namespace ringbolt::link
