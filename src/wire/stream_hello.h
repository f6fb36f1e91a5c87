#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"

/// What the frames of a stream say to each other before they carry packets. Layout: docs/formats/stream.md.
namespace ringbolt::wire {

inline constexpr uint16_t kStreamVersion = 1;
inline constexpr size_t kStreamHelloBytes = 16;
inline constexpr size_t kMaxStreamGreetingBytes = 240;
inline constexpr size_t kMaxStreamHelloBytes = kStreamHelloBytes + kMaxStreamGreetingBytes;
inline constexpr size_t kStreamHelloAckBytes = 4;

/// The payload of HELLO.
struct StreamHello {
  uint16_t first_version = kStreamVersion;  ///< the oldest that the sender speaks
  uint16_t last_version = kStreamVersion;   ///< the newest
  uint32_t features = 0;                    ///< none yet; unknown ones are ignored
  uint64_t incarnation = 0;                 ///< of the sender's link, the same on all its rails; never 0
};

/// Errors: EBADMSG (too short or too long, incarnation 0), EPROTONOSUPPORT (no version in common).
base::Result<StreamHello> parse_stream_hello(std::span<const std::byte> payload);

/// What follows the fixed part in a payload that parses: a matter of those who use the link.
inline std::span<const std::byte> stream_greeting(std::span<const std::byte> payload) {
  return payload.subspan(kStreamHelloBytes);
}

/// Into the first kStreamHelloBytes bytes of `out`.
void emit(const StreamHello& hello, std::span<std::byte> out);

}  // namespace ringbolt::wire
