#pragma once

#include <cstdint>

/// The CM's clockwork: times are powers of two of 4.096 us, which everybody takes as 2^(n-8) ms.
namespace ringbolt::cm {

// Codes have five bits: 31 is 8,389 s.
constexpr uint64_t code_ns(unsigned code) {
  return code >= 8 ? (uint64_t{1'000'000} << (code - 8)) : uint64_t{1'000'000};
}

inline constexpr uint8_t kPacketLifetime = 18;  ///< of a route on RoCE
// The Linux kernel's values (drivers/infiniband/core/cma.c), which peers' patience is made for: 4.3 s, 15 tries.
inline constexpr uint8_t kResponseTimeout = 20;
inline constexpr uint8_t kMaxRetries = 15;
// 134 ms.
inline constexpr uint8_t kAckDelay = 15;
// 69 s for the program to make up its mind.
inline constexpr uint8_t kMraTimeout = 24;

/// How long the active side waits for an answer.
constexpr uint64_t active_wait_ns(uint8_t lifetime) { return 2 * code_ns(lifetime) + code_ns(kResponseTimeout); }
constexpr uint64_t timewait_ns(uint8_t ack_timeout) { return code_ns(ack_timeout); }

/// The local ACK timeout of a queue pair: packet lifetime both ways and the peer's delay (Linux: cm_ack_timeout).
constexpr uint8_t ack_timeout(uint8_t peer_delay, uint8_t lifetime) {
  unsigned timeout = lifetime + 1U;
  if (timeout >= peer_delay) {
    timeout += peer_delay >= timeout - 1 ? 1U : 0U;
  } else {
    timeout = peer_delay + (timeout >= peer_delay - 1U ? 1U : 0U);
  }
  return static_cast<uint8_t>(timeout > 31 ? 31 : timeout);
}

static_assert(active_wait_ns(18) == 6'144'000'000);
static_assert(timewait_ns(19) == 2'048'000'000);
static_assert(ack_timeout(15, 18) == 19);

}  // namespace ringbolt::cm
