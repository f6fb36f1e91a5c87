#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "perf/parameters.h"

namespace ringbolt::tools::perf {

/// A message: its stamp (sequence number, then seed) in the first 8 bytes, from 16 bytes on again in the last 8, and
/// between them the pattern of the slot that it is sent from. Of shorter ones as much as fits: the sequence number's
/// lowest bytes come first.
uint64_t stamp_of(uint32_t seed, uint64_t sequence);

/// Writes everything but the stamp, once for each slot. Thread-safe.
void fill_slot(std::span<std::byte> message, uint32_t seed, uint32_t slot);

/// Hot path: two stores. Thread-safe.
/// Plain stores: posting orders them before the device's read.
void write_stamp(std::span<std::byte> message, uint64_t stamp);

/// Whether the message bears this stamp at both ends. Hot path, safe to call while the message still arrives.
/// The end is looked at before the begin. That both are there proves a whole message only where the device writes in
/// order; what lies between is for find_damage().
bool has_stamp(std::span<const std::byte> message, uint64_t stamp);

/// The sequence number that the message bears, taken for the one next to `expected` (32 bits travel, fewer of short
/// messages). Thread-safe.
uint64_t sequence_in(std::span<const std::byte> message, uint64_t expected);

/// Where the message departs from what was sent from `slot` as message `sequence`; empty: nowhere, as far as `check`
/// looks. Thread-safe.
std::optional<size_t> find_damage(std::span<const std::byte> message, uint32_t seed, uint64_t sequence, uint32_t slot,
                                  Check check);

}  // namespace ringbolt::tools::perf
