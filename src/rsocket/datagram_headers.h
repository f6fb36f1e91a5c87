#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "rsocket/address.h"

/// What stands before a program's bytes in a datagram. Source: rdma-core's librdmacm/docs/rsocket, "Datagram Overview".
namespace ringbolt::rsocket {

/// Over the queue pair: who sends. IPv4: version 4, length 8, port 2, address 4. IPv6: version 6, length 24, port 2,
/// flow information 4, address 16. Port and addresses as they lie in a sockaddr.
struct DatagramHeader {
  static constexpr size_t kMaxBytes = 24;

  Address source;

  size_t bytes() const { return source.family() == AF_INET ? 8 : kMaxBytes; }
  /// Precondition: `out` has bytes().
  void emit(std::span<std::byte> out) const;
  /// Nothing: no such header, or not whole.
  static std::optional<DatagramHeader> parse(std::span<const std::byte> in);
};

/// Over UDP, until both sides know each other's queue pair: tag 55555555, version 4 or 6, op, length 16 or 28, zero,
/// queue pair number 4, the sender's address 4 or 16. All numbers most significant byte first.
struct GreetingHeader {
  static constexpr size_t kMaxBytes = 28;
  enum class Op : uint8_t {
    data = 0,     ///< a program's bytes follow, and the other's queue pair number is wanted
    control = 7,  ///< the answer
  };

  Op op = Op::data;
  uint32_t qpn = 0;
  Address address;  ///< its port means nothing

  size_t bytes() const { return address.family() == AF_INET ? 16 : kMaxBytes; }
  /// Precondition: `out` has bytes().
  void emit(std::span<std::byte> out) const;
  /// Any bytes are safe; `op` may be none of the above. Nothing: no such header, or not whole.
  static std::optional<GreetingHeader> parse(std::span<const std::byte> in);
};

}  // namespace ringbolt::rsocket
