#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

/// Numbers as fault lines write them.
namespace ringbolt::fault {

/// "17". Decimal digits alone, no sign or blank; nothing if it does not fit. Here and below: any bytes are safe to
/// pass. Thread-safe.
std::optional<uint64_t> read_count(std::string_view text);

/// "1%", "0.05%", "0.0005" or "1" as parts of Rule::kCertain; nothing if it is no chance from 0 to 1 or has more
/// digits than that can hold.
std::optional<uint32_t> read_chance(std::string_view text);
/// "0.05%". As read_chance() reads it, without loss. `chance` is in parts of Rule::kCertain.
std::string chance_text(uint32_t chance);

/// "250us": a whole number and one of ns, us, ms, s, min. In nanoseconds; nothing if those don't fit into 64 bits.
std::optional<uint64_t> read_time_ns(std::string_view text);
/// In the largest unit that leaves a whole number.
std::string time_text(uint64_t time_ns);

}  // namespace ringbolt::fault
