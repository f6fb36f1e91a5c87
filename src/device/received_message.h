#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

namespace ringbolt::device {

/// A message that has come whole, as its receive tells it. A value.
struct ReceivedMessage {
  uint32_t source_qpn = 0;
  ibv_wc_opcode opcode = IBV_WC_RECV;
  uint32_t length = 0;     ///< bytes
  unsigned flags = 0;      ///< link::kSlotSolicited, kSlotImmediate, kSlotInvalidate
  uint32_t immediate = 0;  ///< in network byte order, or the key that was invalidated
};

}  // namespace ringbolt::device
