#pragma once

#include <cstdint>
#include <optional>

namespace ringbolt::sanitizer {

/// The `wr_id` under which the device has the request of that number.
/// Tells ours from those of requests that were posted before anybody looked, which have the program's `wr_id`: a
/// program that happens to use this mark has its completions renamed.
constexpr uint64_t kTicketMark = uint64_t{0x5a4e'1712} << 32U;
constexpr uint64_t ticket_of(uint32_t number) { return kTicketMark | number; }
constexpr std::optional<uint32_t> number_of(uint64_t wr_id) {
  constexpr uint64_t kNumberBits = 0xffff'ffff;
  return (wr_id & ~kNumberBits) == kTicketMark ? std::optional(static_cast<uint32_t>(wr_id & kNumberBits))
                                               : std::nullopt;
}

}  // namespace ringbolt::sanitizer
