#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "profile/profile.h"

namespace ringbolt::profile {

enum class GidKind : uint8_t { link_local, ipv4, other };

/// Which of the addresses that were found lies in each slot of the GID table; nothing: the slot is all zeros. `kinds`
/// are those of the addresses: link-local first, then IPv4, then others, as far as there are some. Pure. Thread-safe.
/// The values are indices into `kinds`. As long as the addresses need, not filled up to the table's length.
std::vector<std::optional<size_t>> gid_slots(GidLayout layout, const std::vector<GidKind>& kinds);

/// Whether the slot is one of RoCE version 1. `slot` is an index of gid_slots(). Pure. Thread-safe.
bool is_version_1(GidLayout layout, size_t slot);

/// The interface identifier of the other link-local address that some systems give an interface, made of its GUID (both
/// in host order). Thread-safe.
uint64_t second_interface_id(uint64_t guid);

}  // namespace ringbolt::profile
