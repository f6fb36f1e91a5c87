#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

/// Numbers as fault lines write them.
namespace ringbolt::fault {

/// "17".
std::optional<uint64_t> read_count(std::string_view text);

/// "1%", "0.05%", "0.0005" or "1" as parts of Rule::kCertain; nothing if it is no chance from 0 to 1 or has more
/// digits than that can hold.
std::optional<uint32_t> read_chance(std::string_view text);
/// "0.05%".
std::string chance_text(uint32_t chance);

/// "250us": a whole number and one of ns, us, ms, s, min.
std::optional<uint64_t> read_time_ns(std::string_view text);
/// In the largest unit that leaves a whole number.
std::string time_text(uint64_t time_ns);

}  // namespace ringbolt::fault
