#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace ringbolt::collective {

class PointToPoint;
class ShortExecution;

/// A chunk's place in its call: what the receiver finds it by.
struct ChunkTag {
  uint32_t call = 0;  ///< number of the call in its group
  uint32_t transfer = 0;
  uint32_t chunk = 0;  ///< in its transfer, from 0
  friend bool operator==(const ChunkTag&, const ChunkTag&) = default;
};

/// A received chunk. Its bytes stay until it is destroyed, which gives its memory back to whom it came from.
/// Move-only. Used under the lock of its PointToPoint.
class Parcel {
 public:
  Parcel() = default;
  /// Owns the receipt `id` of `p2p` from here on.
  Parcel(PointToPoint* p2p, uint64_t id, std::span<const std::byte> bytes) : p2p_(p2p), id_(id), bytes_(bytes) {}
  Parcel(Parcel&& other) noexcept { *this = std::move(other); }
  // Swapped: what this one had is given back when the other one ends.
  Parcel& operator=(Parcel&& other) noexcept {
    std::swap(p2p_, other.p2p_);
    std::swap(id_, other.id_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  Parcel(const Parcel&) = delete;
  Parcel& operator=(const Parcel&) = delete;
  inline ~Parcel();

  bool is_here() const { return p2p_ != nullptr; }
  std::span<const std::byte> bytes() const { return bytes_; }
  /// Says that the parcel will stay for a while: its bytes may move elsewhere to free the memory that the PointToPoint
  /// receives into.
  inline void settle();

 private:
  PointToPoint* p2p_ = nullptr;
  uint64_t id_ = 0;
  std::span<const std::byte> bytes_;
};

/// What an execution needs of the fabric, point to point: memory to put a chunk in, and its way to another rank. A
/// chunk that has been handed over arrives once and whole, or its owner fails the execution; chunks may overtake one
/// another. All calls are made under its owner's lock and none blocks.
class PointToPoint {
 public:
  /// Memory for a chunk on its way out.
  struct Slot {
    std::byte* bytes = nullptr;
    uint32_t id = 0;
  };

  virtual ~PointToPoint() = default;
  /// Memory for `length_bytes` (up to Limits::most_chunk_bytes); nothing if all of it is in use: the execution is tried
  /// again after there has been progress.
  virtual std::optional<Slot> take_slot(uint32_t length_bytes) = 0;
  /// Copies that much to the beginning of the slot, for a peer to read.
  virtual void fill(Slot slot, const std::byte* from, uint32_t length_bytes) = 0;
  /// Sends it; the slot is not the caller's any more.
  /// `via`: ranks of the group; only read until it returns.
  virtual void send(Slot slot, uint32_t length_bytes, uint32_t peer, std::span<const uint32_t> via,
                    const ChunkTag& tag) = 0;
  /// take_slot(), fill() and send() in one, of bytes that lie elsewhere: what short calls mostly do. False: there is no
  /// slot, and nothing has been done.
  [[nodiscard]] virtual bool send_copy(const std::byte* from, uint32_t length_bytes, uint32_t peer,
                                       std::span<const uint32_t> via, const ChunkTag& tag) {
    const auto slot = take_slot(length_bytes);
    if (!slot) {
      return false;
    }
    if (length_bytes > 0) {
      fill(*slot, from, length_bytes);
    }
    send(*slot, length_bytes, peer, via, tag);
    return true;
  }
  /// Gives back a slot that is not needed after all.
  virtual void cancel(Slot slot) = 0;
  /// Tells `peer` that of a transfer of its to us so many chunks have been used.
  /// `tag.chunk`: how many. It need not arrive in order; it arrives once.
  virtual void tell_used(uint32_t peer, const ChunkTag& tag) = 0;

 protected:
  friend class Parcel;
  friend class ShortExecution;
  virtual void release(uint64_t parcel) = 0;
  /// See Parcel::settle(): what stands for the parcel from now on.
  struct Place {
    uint64_t parcel = 0;
    std::span<const std::byte> bytes;
  };
  virtual Place settle(uint64_t parcel, std::span<const std::byte> bytes) = 0;
};

Parcel::~Parcel() {
  if (p2p_ != nullptr) {
    p2p_->release(id_);
  }
}

void Parcel::settle() {
  if (p2p_ != nullptr) {
    const PointToPoint::Place place = p2p_->settle(id_, bytes_);
    id_ = place.parcel;
    bytes_ = place.bytes;
  }
}

}  // namespace ringbolt::collective
