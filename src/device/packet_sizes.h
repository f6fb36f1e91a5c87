#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

#include "link/udp_message.h"
#include "wire/packet.h"

namespace ringbolt::device {

/// Room that any packet finds enough.
inline constexpr size_t kMostPacketBytes = link::kMaxUdpPacketBytes - wire::kIcrcBytes;

/// Bytes of a path MTU as the verbs number it.
constexpr uint32_t mtu_bytes(ibv_mtu mtu) { return 128U << static_cast<uint32_t>(mtu); }

}  // namespace ringbolt::device
