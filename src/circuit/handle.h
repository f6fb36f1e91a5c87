#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "membership/announcement.h"

namespace ringbolt::circuit {

inline constexpr size_t kHandleBytes = 128;

/// What names a listener to whoever is to connect to it, however far it travels: bytes that say all that is needed.
/// Layout: docs/formats/circuit.md.
struct Handle {
  membership::Contact contact;  ///< of addresses the first kMostHandleAddresses
  uint64_t listener = 0;        ///< random
  friend bool operator==(const Handle&, const Handle&) = default;
};
inline constexpr size_t kMostHandleAddresses = 4;
/// Bytes at the end that are whoever's who connects: zero in a new handle, and no part of what it says.
inline constexpr size_t kTicketBytes = 8;

/// The ticket is zero afterwards. More addresses than fit are left out, the last ones.
void emit(const Handle& handle, std::span<std::byte, kHandleBytes> to);
/// Nothing if it is none of ours, of another version, or changed anywhere. Any bytes are safe. Pure.
std::optional<Handle> parse_handle(std::span<const std::byte, kHandleBytes> bytes);

/// 0 in a handle that nobody has connected with. Handles are values of the program's: no lock of ours guards their
/// bytes.
uint64_t ticket_of(std::span<const std::byte, kHandleBytes> handle);
void set_ticket(std::span<std::byte, kHandleBytes> handle, uint64_t ticket);

}  // namespace ringbolt::circuit
