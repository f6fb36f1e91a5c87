#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"

/// Payload of a kSelectiveAck packet: an ACK or NAK (in its AETH) for the PSN of its BTH, the first one that is
/// missing, and which of the PSNs after that one have come in. Only between peers that greeted each other. Of UC: how
/// far the responder is; the bitmap is not looked at. Layout: docs/formats/rocev2.md.
namespace ringbolt::wire {

inline constexpr size_t kSelectiveAckBits = 256;
inline constexpr size_t kSelectiveAckBytes = kSelectiveAckBits / 8;

/// Bit i stands for PSN (BTH's PSN + 1 + i).
struct SelectiveAck {
  std::array<uint64_t, kSelectiveAckBits / 64> words{};  ///< bit i is bit i % 64 of word i / 64

  constexpr bool has(size_t i) const { return (words[i / 64] >> (i % 64) & 1) != 0; }
  constexpr void set(size_t i) { words[i / 64] |= uint64_t{1} << (i % 64); }
  friend bool operator==(const SelectiveAck&, const SelectiveAck&) = default;
};

/// Errors: EBADMSG (another length).
base::Result<SelectiveAck> parse_selective_ack(std::span<const std::byte> payload);

void emit(const SelectiveAck& ack, std::span<std::byte, kSelectiveAckBytes> out);

}  // namespace ringbolt::wire
