#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace ringbolt::tools {

/// Fills `bytes` with pattern number `number`: every 8 bytes tell number and place, so that a message that is stale,
/// shifted or cut short does not pass. Thread-safe.
void fill_pattern(std::span<std::byte> bytes, uint32_t number);

/// Where `bytes` first departs from pattern `number`, if anywhere. Thread-safe.
std::optional<size_t> find_mismatch(std::span<const std::byte> bytes, uint32_t number);

}  // namespace ringbolt::tools
