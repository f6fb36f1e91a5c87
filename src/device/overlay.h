#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <optional>

#include "wire/flow.h"

/// Addresses of ringbolt0: those of all nodes differ in the last byte alone, which is the node's number plus one.
/// docs/overlay.md. All pure and thread-safe.
namespace ringbolt::device {

/// The last byte of an address of ringbolt0; nothing if it is another device's.
std::optional<uint8_t> overlay_place(const wire::Address& gid);
/// The address of the same kind as `own`, one of ringbolt0, on the node of that place.
wire::Address overlay_address(const wire::Address& own, uint8_t place);

}  // namespace ringbolt::device
