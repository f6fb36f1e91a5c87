#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "bringup/port_card.h"
#include "verbs/library.h"

namespace ringbolt::circuit {

/// How long messages travel over cables: copied, in frames; or written from the program's memory straight into the
/// receiver's. `automatic`: as ways_of() says.
enum class Way : uint8_t { automatic, frames, direct };

/// What this process does with circuits of its own and others'. Of the whole process; set once as it begins.
struct Ways {
  bool is_direct = false;
  /// Shorter messages go by frames all the same: to copy one takes less than to be told first where it goes.
  uint64_t least_written_bytes = 64 * 1024;
  std::string why = {};  ///< for the log
};

/// On Ringbolt's own software device frames are as fast, and copied in such an order that a GPU may watch; a card
/// writes by itself, while a processor that copies for it is the limit.
/// Where no port has RC there are no WRITEs.
inline Ways ways_of(Way asked, uint64_t least_written_bytes, const verbs::Library& library,
                    const std::vector<bringup::PortCard>& cards) {
  const bool is_software = library.calls().receive_in_place != nullptr;  // only our own library has that
  const bool has_rc = std::ranges::any_of(cards, [](const auto& card) { return card.capabilities.has_rc; });
  Ways ways;
  ways.is_direct = has_rc && (asked == Way::direct || (asked == Way::automatic && !is_software));
  ways.least_written_bytes = least_written_bytes;
  ways.why = !has_rc                   ? "no port here has RC"
             : asked != Way::automatic ? "RINGBOLT_NCCL_WAY says so"
             : is_software             ? "the software device copies anyway"
                                       : "the device writes by itself";
  return ways;
}

}  // namespace ringbolt::circuit
