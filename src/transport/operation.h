#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "wire/headers.h"
#include "wire/selective_ack.h"

/// What goes into a requester and what comes out of the engines.
namespace ringbolt::transport {

/// A send work request, as far as the protocol is concerned. Its bytes stay with the host.
/// A value. The host keeps the operation's bytes until it is complete: packets are built from them, again if need be.
struct Operation {
  enum Kind : uint8_t { send, write, read, compare_swap, fetch_add };
  Kind kind = send;
  bool has_immediate = false;  ///< SEND, WRITE
  bool invalidates = false;    ///< SEND, and no immediate
  bool is_solicited = false;
  bool is_fenced = false;  ///< begins when every READ and atomic before it is complete
  uint32_t length = 0;     ///< bytes, at most 2^31; not for atomics
  uint32_t immediate = 0;  ///< as it lies on the wire
  uint32_t invalidate_key = 0;
  uint64_t remote_address = 0;
  uint32_t key = 0;  ///< of the remote region
  uint64_t compare = 0;
  uint64_t swap_or_add = 0;

  constexpr bool is_atomic() const { return kind == compare_swap || kind == fetch_add; }
  constexpr bool is_answered() const { return kind == read || is_atomic(); }
};

inline constexpr uint32_t kMaxMessageBytes = 1U << 31;
inline constexpr uint32_t kAtomicBytes = 8;

/// A packet to send. `headers` is complete (pad count too) but for what only the host knows: the partition key. The
/// host appends payload, pad and ICRC.
/// A value, used again for the next packet: each next_packet() sets all that its opcode uses.
struct OutPacket {
  enum class Payload : uint8_t {
    none,
    operation,  ///< `length` bytes from `offset` of operation number `operation`
    memory,     ///< `length` bytes at `address` of the region `key`: a READ response. If the region has gone
                ///< meanwhile, don't send but call RcResponder::refuse_read().
    bytes,      ///< the first `length` of `bytes`
  };
  wire::Headers headers;
  Payload payload = Payload::none;
  uint32_t operation = 0;  ///< 0, 1, 2... in the order of submit(), wraps
  uint64_t address = 0;
  uint32_t key = 0;
  uint32_t offset = 0;
  uint32_t length = 0;
  std::array<std::byte, wire::kSelectiveAckBytes> bytes;
};

}  // namespace ringbolt::transport
