#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/engine.h"
#include "ringbolt/status.h"

namespace ringbolt::mesh {

/// Which of a mesh's clients a chunk or word is for: the low bits of ChunkHeader::group. The highest bit is the
/// client's.
inline constexpr uint16_t kChannelBits = 0x7fff;

/// The channels of one client, `last` included; the same on all ranks.
struct Channels {
  uint16_t first = 0;
  uint16_t last = 0;

  bool has(uint16_t group) const {
    const uint16_t channel = group & kChannelBits;
    return first <= channel && channel <= last;
  }
};
// Of groups (group/group_numbers.h), of cables that are measured before there are clients, of couriers.
inline constexpr Channels kGroupChannels{0, 0x7ffd};
inline constexpr uint16_t kMeasuringChannel = 0x7ffe;
inline constexpr Channels kCourierChannels{0x7fff, 0x7fff};

/// Who works with its like on other ranks, over a mesh: each has channels of its own. It knows nothing of cables,
/// relays or heartbeats; the mesh knows nothing of what its clients do. Called under the mesh's lock, by whichever
/// thread moves chunks; nothing here may block. It must outlive the mesh.
class Client {
 public:
  virtual ~Client() = default;

  /// As engine::Receiver has them, of its channels.
  /// `header.source` is a rank of the mesh other than this one; the rest of the header is the sender's word, to be
  /// checked. Releases or settles the receipt before it returns, whatever it thinks of the chunk.
  virtual void on_chunk(const engine::ChunkHeader& header, const engine::Receipt& receipt) = 0;
  virtual void on_word(const engine::ChunkHeader& header, std::span<const std::byte> bytes) = 0;
  /// What came through the side channel (Mesh::send_message()); any bytes, of any kind that is not the mesh's own.
  virtual void on_message(uint32_t /*from*/, uint16_t /*kind*/, std::span<const std::byte> /*bytes*/) {}
  /// A rank is lost for good; once. Nothing comes from it any more.
  /// No client may attach or be destroyed in here: the mesh goes through all of them.
  virtual void on_rank_failed(uint32_t rank, const Status& status) = 0;
  /// Likewise, and again each time that it is said anew. `is_certain`: its process has ended.
  virtual void on_rank_given_up(uint32_t /*rank*/, bool /*is_certain*/) {}
  /// Goes on with what does not depend on chunks alone: deadlines. Whether there is more to do at once.
  /// A deadline may be seen 20 ms late: that is how long all may sleep while nothing arrives (thread.cpp).
  virtual bool advance(uint64_t now_ns) = 0;
  /// Whether something is under way that goes on by chunks.
  /// Decides only how soon the mesh's thread looks again after a caller has gone.
  virtual bool is_busy() const = 0;
};

/// One that wants to know when a turn of the engine is over, too.
class TurnClient : public Client {
 public:
  /// After each turn, whether anything has come for it or not; under the mesh's lock, and may not block.
  virtual void end_turn() = 0;
};

}  // namespace ringbolt::mesh
