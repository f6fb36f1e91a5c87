#pragma once

#include <cstdint>
#include <vector>

#include "bootstrap/jaccl_devices.h"

namespace ringbolt::tools {

/// Ranks in a circle, each a cable away from the next.
struct RingOrder {
  std::vector<uint32_t> ranks;  ///< beginning with 0; empty: none was found
  size_t n_rails = 0;           ///< that each two neighbours of it have, or at least have
  bool is_even = false;         ///< none has more
  bool is_certain = true;       ///< if none was found: there is none
};

/// An order of three or more ranks in which each shares a cable with the next and the last with the first: of those
/// with as many rails everywhere, as JACCL's ring needs, the one with most; else any. Bounded. Pure. Thread-safe.
RingOrder ring_order(const bootstrap::JacclDevices& devices);

}  // namespace ringbolt::tools
