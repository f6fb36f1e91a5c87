#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ringbolt::tools {

/// Reads "2.5Gbit", "1Gb/s", "100mbit": a number and a unit, mega or giga bits a second, in any case; as Mb/s from 1 to
/// cluster::kMaxRateMbps, rounded. Any bytes are safe to pass. Thread-safe.
std::optional<uint32_t> parse_rate_mbps(std::string_view text);

}  // namespace ringbolt::tools
