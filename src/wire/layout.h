#pragma once

#include <cstddef>
#include <cstdint>

/// Offsets and bits of the headers, in the order of docs/formats/rocev2.md; for the codecs alone.
namespace ringbolt::wire {

// In bytes, from the beginning of each header.
struct BthAt {
  static constexpr size_t opcode = 0, flags = 1, pkey = 2, dest_qp = 4, psn = 8;
};
// Of the byte `flags`.
inline constexpr uint32_t kBthSolicited = 0x80;
inline constexpr uint32_t kBthMigrated = 0x40;
inline constexpr uint32_t kBthPadShift = 4;  ///< two bits
inline constexpr uint32_t kBthVersionMask = 0x0f;
// Of the word `dest_qp`.
inline constexpr uint32_t kBthFecn = 0x80000000;
inline constexpr uint32_t kBthBecn = 0x40000000;
// Of the word `psn`.
inline constexpr uint32_t kBthAckRequest = 0x80000000;
// Reserved bits: ours, between own peers.
inline constexpr uint32_t kBthSealed = 0x40000000;
inline constexpr uint32_t kBthCarriesAck = 0x20000000;  ///< means nothing in a packet that is not sealed

struct RethAt {
  static constexpr size_t address = 0, key = 8, length = 12;
};
struct AtomicEthAt {
  static constexpr size_t address = 0, key = 8, swap_or_add = 12, compare = 20;
};
inline constexpr size_t kRethBytes = 16;
inline constexpr size_t kAtomicEthBytes = 28;
inline constexpr size_t kAethBytes = 4;
inline constexpr size_t kAtomicAckEthBytes = 8;
inline constexpr size_t kDethBytes = 8;
inline constexpr size_t kImmediateBytes = 4;  ///< immediate data, or the key to invalidate

}  // namespace ringbolt::wire
