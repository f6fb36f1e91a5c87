#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"

/// What the two ends of a stream tell each other as private data of the connection request and of the reply.
/// Source: rdma-core's librdmacm/docs/rsocket.
namespace ringbolt::rsocket {

/// Memory that the other side may write to.
struct RemoteBlock {
  uint64_t address = 0;
  uint32_t key = 0;
  uint32_t length = 0;

  friend bool operator==(const RemoteBlock&, const RemoteBlock&) = default;
};

/// Whether this machine keeps the most significant byte first. Entries written into a peer's table are in its order.
inline constexpr bool kIsBigEndian = std::endian::native == std::endian::big;

/// 40 bytes, all numbers most significant byte first:
///     0  version, 1         1  flags         2  credits, 2 bytes     4  zero, 3 bytes     7  size code of the iomap
///     table 8  table of targets: address 8, key 4, entries 4     24  first half of the ring: address 8, key 4, bytes 4
struct ConnectionData {
  static constexpr size_t kBytes = 40;
  static constexpr uint8_t kVersion = 1;

  bool is_big_endian = kIsBigEndian;
  bool has_iomap = true;       ///< the sender's table of targets is followed by an iomap table
  uint16_t credits = 0;        ///< messages that the sender of this can take before it grants more
  uint32_t iomap_entries = 0;  ///< as the size code can say it: see round_iomap_entries
  RemoteBlock targets;         ///< length: how many entries the table has
  RemoteBlock ring;            ///< length: bytes

  /// Pure, as parse().
  std::array<std::byte, kBytes> emit() const;
  /// Reads the first 40 bytes; what follows is padding. EPROTO: too short, or a version other than 1.
  /// Any bytes are safe. Addresses, keys and lengths are the peer's: nothing here is followed.
  static base::Result<ConnectionData> parse(std::span<const std::byte> bytes);

  friend bool operator==(const ConnectionData&, const ConnectionData&) = default;
};

/// The size code is a byte: up to 128 it is the number of entries, above that the low seven bits are the number's upper
/// byte. Returns the largest number of entries up to `entries` that the code can say.
uint32_t round_iomap_entries(uint32_t entries);

}  // namespace ringbolt::rsocket
