#pragma once

#include <arpa/inet.h>

#include <cstdint>

namespace ringbolt::rsocket {

/// What a message is about: the top three bits of its immediate data. Other values are reserved, and ignored.
enum class Op : uint8_t {
  data = 0,           ///< value: how many bytes were written into the stream ring
  credits = 4,        ///< value: the message number up to which the receiver may be written to (16 bits count)
  iomap_updated = 6,  ///< value: the index of the entry that was written
  control = 7,        ///< value: a Control
};

/// What a control message says.
enum class Control : uint32_t {
  disconnect = 0,  ///< no more data, in either direction
  keepalive = 1,   ///< nothing
  shutdown = 2,    ///< no more data from the sender of this message
};

/// The four bytes that travel with each WRITE, most significant byte first on the wire. Here in host order.
/// Any word can be parsed: `op` may be a reserved one then.
struct Immediate {
  Op op = Op::data;
  uint32_t value = 0;

  static constexpr uint32_t kValueBits = 29;
  static constexpr uint32_t kMaxValue = (1U << kValueBits) - 1;

  static constexpr Immediate parse(uint32_t word) { return {static_cast<Op>(word >> kValueBits), word & kMaxValue}; }
  constexpr uint32_t emit() const { return (static_cast<uint32_t>(op) << kValueBits) | (value & kMaxValue); }

  /// The same, as verbs' imm_data wants it.
  static Immediate parse_wire(uint32_t word) { return parse(ntohl(word)); }
  uint32_t emit_wire() const { return htonl(emit()); }

  friend bool operator==(const Immediate&, const Immediate&) = default;
};

}  // namespace ringbolt::rsocket
