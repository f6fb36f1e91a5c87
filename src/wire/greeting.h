#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"

/// Payload of a kGreeting packet: how own peers tell each other what they can do beyond the standard. Sent to the
/// peer's queue pair; other implementations drop it. Layout: docs/formats/rocev2.md.
namespace ringbolt::wire {

inline constexpr size_t kGreetingBytes = 16;

/// Bits of Greeting::features. Unknown bits are ignored: both use what both have.
inline constexpr uint32_t kFeatureSelectiveAck = 1U << 0;
inline constexpr uint32_t kFeatureReports = 1U << 1;  ///< UC: answers AckReq with kSelectiveAck: how far it is

struct Greeting {
  uint32_t features = 0;
  bool wants_answer = false;  ///< the other side greets back, without this bit
  friend bool operator==(const Greeting&, const Greeting&) = default;
};

/// Errors: EBADMSG (too short, wrong magic), EPROTONOSUPPORT (another version).
base::Result<Greeting> parse_greeting(std::span<const std::byte> payload);

void emit(const Greeting& greeting, std::span<std::byte, kGreetingBytes> out);

}  // namespace ringbolt::wire
