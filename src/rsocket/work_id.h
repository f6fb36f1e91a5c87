#pragma once

#include <cstdint>

namespace ringbolt::rsocket {

enum class WorkKind : uint8_t { receive = 0, data = 1, control = 2 };

/// What a completion is about: the 64 bits that come back with it. A receive is all zeros.
/// Of datagram sockets the lower half is a slot, of receives, too.
struct WorkId {
  WorkKind kind = WorkKind::receive;
  uint32_t staged_bytes = 0;  ///< of the staging ring, to be given back

  static constexpr WorkId parse(uint64_t id) {
    return {static_cast<WorkKind>(id >> 32U), static_cast<uint32_t>(id & 0xffffffffU)};
  }
  constexpr uint64_t emit() const { return (static_cast<uint64_t>(kind) << 32U) | staged_bytes; }
};

}  // namespace ringbolt::rsocket
