#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "engine/cable_credit.h"

namespace ringbolt::engine {

/// What an end of a cable says of it with every beat, so that what got lost does not stay taken. [Size]
/// A value. 72 bytes a size, so that a beat stays a small message.
struct CableReport {
  std::array<uint32_t, 2> sent = {};      ///< the number of the next message to be sent
  std::array<LostMessages, 2> lost = {};  ///< of those that should have come
  friend bool operator==(const CableReport&, const CableReport&) = default;
};

inline constexpr size_t kReportBytes = 2 * (4 + 4 + 2 * LostMessages::kTold);

/// Little-endian: for each size the number sent, the count of lost ones and the latest of them (docs/formats/chunk.md).
std::array<std::byte, kReportBytes> emit(const CableReport& report);
/// Of the first bytes of a beat; nothing if it is shorter. Any bytes are safe.
std::optional<CableReport> parse_report(std::span<const std::byte> beat);

}  // namespace ringbolt::engine
