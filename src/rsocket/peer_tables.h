#pragma once

#include <cstdint>

#include "rsocket/connection_data.h"
#include "rsocket/target_table.h"

// Hot path.

namespace ringbolt::rsocket {

/// Where in the peer's memory our offers and mappings are written: its table of targets, in turn, and the iomap behind
/// it. What it says of its memory is its own affair: its keys guard it. Not thread-safe: under the socket's lock.
/// Source: rdma-core's librdmacm/docs/rsocket, "Connection Data".
class PeerTables {
 public:
  struct Place {
    uint64_t address = 0;
    uint32_t key = 0;
    friend bool operator==(const Place&, const Place&) = default;
  };

  /// Of a peer that has not said anything yet.
  PeerTables() = default;
  /// `peer` has one target at least. The first is known to it from our connection data.
  /// A remainder of its number of targets: 0 would be a division by it.
  explicit PeerTables(const ConnectionData& peer)
      : targets_(peer.targets),
        iomap_entries_(peer.has_iomap ? peer.iomap_entries : 0),
        next_target_(1 % peer.targets.length),
        is_swapped_(peer.is_big_endian != kIsBigEndian) {}

  /// The peer has the other byte order.
  bool is_swapped() const { return is_swapped_; }
  /// How many mappings the peer can keep.
  uint32_t iomap_entries() const { return iomap_entries_; }

  /// The entry for the next target, each in its turn.
  /// It may wrap at 2^64 where a peer tells nonsense: its key then refuses the WRITE.
  Place take_target() {
    const Place place{targets_.address + next_target_ * kTargetBytes, targets_.key};
    next_target_ = (next_target_ + 1) % targets_.length;
    return place;
  }
  /// `index` < iomap_entries().
  Place iomap_entry(uint32_t index) const {
    return {targets_.address + uint64_t{targets_.length} * kTargetBytes + index * kIomapBytes, targets_.key};
  }

 private:
  RemoteBlock targets_{0, 0, 1};  // length: entries
  uint32_t iomap_entries_ = 0;
  uint32_t next_target_ = 0;
  bool is_swapped_ = false;
};

}  // namespace ringbolt::rsocket
