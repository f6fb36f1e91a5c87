#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"

/// Management datagrams: 256 bytes, sent to queue pair 1. Layout: docs/formats/ib-cm.md.
namespace ringbolt::wire {

inline constexpr size_t kMadBytes = 256;
inline constexpr size_t kMadHeaderBytes = 24;
inline constexpr uint32_t kGsiQpn = 1;
// The well-known Q_Key of queue pair 1: the general services.
inline constexpr uint32_t kGsiQkey = 0x80010000;

using MadIn = std::span<const std::byte, kMadBytes>;
using MadOut = std::span<std::byte, kMadBytes>;

inline constexpr uint8_t kMadBaseVersion = 1;
inline constexpr uint8_t kMadClassCm = 7;
inline constexpr uint8_t kCmClassVersion = 2;
inline constexpr uint8_t kMadMethodSend = 3;

/// Attributes of the CM class.
inline constexpr uint16_t kCmReq = 0x10;
inline constexpr uint16_t kCmMra = 0x11;
inline constexpr uint16_t kCmRej = 0x12;
inline constexpr uint16_t kCmRep = 0x13;
inline constexpr uint16_t kCmRtu = 0x14;
inline constexpr uint16_t kCmDreq = 0x15;
inline constexpr uint16_t kCmDrep = 0x16;
inline constexpr uint16_t kCmSidrReq = 0x17;
inline constexpr uint16_t kCmSidrRep = 0x18;

/// The common header of all management datagrams. A value; numbers in host order.
struct MadHeader {
  uint8_t base_version = kMadBaseVersion;
  uint8_t management_class = kMadClassCm;
  uint8_t class_version = kCmClassVersion;
  uint8_t method = kMadMethodSend;
  uint16_t status = 0;
  uint16_t class_specific = 0;
  uint64_t transaction_id = 0;
  uint16_t attribute = 0;
  uint32_t modifier = 0;
  friend bool operator==(const MadHeader&, const MadHeader&) = default;
};

MadHeader parse_mad_header(MadIn mad);

/// Writes the first 24 bytes.
void emit(const MadHeader& header, MadOut mad);

}  // namespace ringbolt::wire
