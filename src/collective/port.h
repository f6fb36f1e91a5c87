#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace ringbolt::collective {

class Port;
class ShortExecution;

/// A chunk's place in its call: what the receiver finds it by.
struct ChunkTag {
  uint32_t call = 0;  ///< number of the call in its group
  uint32_t lane = 0;
  uint32_t chunk = 0;  ///< in its lane, from 0
  friend bool operator==(const ChunkTag&, const ChunkTag&) = default;
};

/// A received chunk. Its bytes stay until it is destroyed, which gives its memory back to the port that made it.
/// Move-only. Used under the port's lock.
class Parcel {
 public:
  Parcel() = default;
  Parcel(Port* port, uint64_t id, std::span<const std::byte> bytes) : port_(port), id_(id), bytes_(bytes) {}
  Parcel(Parcel&& other) noexcept { *this = std::move(other); }
  Parcel& operator=(Parcel&& other) noexcept {
    std::swap(port_, other.port_);
    std::swap(id_, other.id_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  Parcel(const Parcel&) = delete;
  Parcel& operator=(const Parcel&) = delete;
  inline ~Parcel();

  bool is_here() const { return port_ != nullptr; }
  std::span<const std::byte> bytes() const { return bytes_; }
  /// Tells the port that the parcel will stay for a while: it may move its bytes elsewhere to free the memory that it
  /// receives into.
  inline void settle();

 private:
  Port* port_ = nullptr;
  uint64_t id_ = 0;
  std::span<const std::byte> bytes_;
};

/// What an execution needs of the fabric: memory to put a chunk in, and its way to another rank. A chunk that has been
/// handed over arrives once and whole, or the port's owner fails the execution; chunks may overtake one another.
/// All calls are made under the lock of whoever owns the port and none blocks.
class Port {
 public:
  /// Memory for a chunk on its way out.
  struct Room {
    std::byte* bytes = nullptr;
    uint32_t id = 0;
  };

  virtual ~Port() = default;
  /// Memory for `length_bytes` (up to Limits::most_chunk_bytes); nothing if all of it is in use: the execution is tried
  /// again after the port has made progress.
  virtual std::optional<Room> room(uint32_t length_bytes) = 0;
  /// Copies that much to the beginning of the room, for a peer to read.
  virtual void fill(Room room, const std::byte* from, uint32_t length_bytes) = 0;
  /// Sends it; the room is the port's again.
  virtual void send(Room room, uint32_t length_bytes, uint32_t peer, std::span<const uint32_t> via,
                    const ChunkTag& tag) = 0;
  /// Gives back a room that is not needed after all.
  virtual void cancel(Room room) = 0;
  /// Tells `peer` that of a lane of its to us so many chunks have been used.
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
  if (port_ != nullptr) {
    port_->release(id_);
  }
}

void Parcel::settle() {
  if (port_ != nullptr) {
    const Port::Place place = port_->settle(id_, bytes_);
    id_ = place.parcel;
    bytes_ = place.bytes;
  }
}

}  // namespace ringbolt::collective
