#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "rsocket/connection_data.h"

/// The memory in which the peer tells us where we may write to: two targets for the stream (16 bytes each: address 8,
/// key 4, length 4), then the peer's iomap (24 bytes each: offset 8, and the same). All in our byte order; the peer
/// writes them by RDMA and says so by a message.
namespace ringbolt::rsocket {

inline constexpr uint32_t kTargets = 2;
inline constexpr size_t kTargetBytes = 16;
inline constexpr size_t kIomapBytes = 24;

inline size_t table_bytes(uint32_t iomap_entries) { return kTargets * kTargetBytes + iomap_entries * kIomapBytes; }

/// One entry as the bytes to write into a peer's table; `swap`: the peer has the other byte order.
std::array<std::byte, kTargetBytes> emit_target(const RemoteBlock& block, bool swap);
std::array<std::byte, kIomapBytes> emit_iomap(uint64_t offset, const RemoteBlock& block, bool swap);

/// Our side of such a table. What is read from it only ever says where in the *peer's* memory to write, which the
/// peer's keys guard. Not thread-safe, except against the peer.
/// The memory is registered for the peer's WRITEs, and so may change under each read.
class TargetTable {
 public:
  /// `memory`: zeroed, table_bytes(), 8-byte aligned, and outlives this.
  TargetTable() = default;
  TargetTable(std::span<std::byte> memory, uint32_t iomap_entries) : memory_(memory), iomap_entries_(iomap_entries) {}

  /// The first target comes with the connection data, the peer writes the second one first.
  void begin(const RemoteBlock& first);
  /// A message says that the peer has written a target with it. One for each: the entry behind it may be under the
  /// peer's hands, a part of it written. A target that a wrong peer writes too early, or without bytes, is left.
  void take_written();
  /// Where the stream goes on, and how much fits there; none: nothing may be sent now.
  /// Good until advance() or begin(). A copy: the peer can't change it any more.
  const RemoteBlock* current() const { return count_ == 0 ? nullptr : &queue_[0]; }
  /// `length` bytes, at most current()->length, have been written there.
  void advance(uint32_t length);

  /// Where the peer's mapping has the byte `offset`, and how much of it lies there; none: no mapping has it.
  std::optional<RemoteBlock> find(uint64_t offset) const;

 private:
  std::span<std::byte> memory_;
  uint32_t iomap_entries_ = 0;
  uint32_t next_ = 1;  ///< the target that the peer writes next
  std::array<RemoteBlock, kTargets> queue_{};
  uint32_t count_ = 0;
};

}  // namespace ringbolt::rsocket
