#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"

/// Payload of a kGreeting packet: how own peers find each other, and agree upon what a stranger cannot guess. Sent to
/// the peer's queue pair; other implementations drop it. Layout: docs/formats/rocev2.md.
namespace ringbolt::wire {

inline constexpr size_t kGreetingBytes = 32;

/// A value. Tokens are random; who knows one may send, so that they go to the peer's address alone (transport/seal.h).
struct Greeting {
  bool wants_answer = false;  ///< the other side greets back
  bool is_sealing = false;    ///< every request that its sender sends after it is sealed
  uint64_t token = 0;         ///< what packets to its sender are to be sealed with; never 0
  uint64_t echo = 0;          ///< the token that its sender has heard from whom it greets; 0: none
  friend bool operator==(const Greeting&, const Greeting&) = default;
};

/// Errors: EBADMSG (too short, wrong magic, no token), EPROTONOSUPPORT (another version).
base::Result<Greeting> parse_greeting(std::span<const std::byte> payload);

void emit(const Greeting& greeting, std::span<std::byte, kGreetingBytes> out);

}  // namespace ringbolt::wire
