#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>

#include "device/limits.h"
#include "device/pieces.h"

namespace ringbolt::device {

/// The receive that a message is being put into. A value; not thread-safe.
struct CurrentReceive {
  bool is_open = false;
  uint64_t wr_id = 0;
  std::array<ibv_sge, kMaxSge> wanted;  ///< as they were posted
  uint32_t wanted_count = 0;            ///< of `wanted`
  Pieces pieces;                        ///< the same, translated: ReceiveQueue::translate()
  uint32_t received = 0;                ///< bytes of the message that were placed
  bool is_refused = false;              ///< its keys don't allow it
  bool is_overrun = false;              ///< it was posted beyond the depth, and accepted silently
};

}  // namespace ringbolt::device
