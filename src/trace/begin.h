#pragma once

#include <cstdint>
#include <string>
#include <string_view>

/// Whether this process records, and where.
namespace ringbolt::trace {

/// What RINGBOLT_RECORD asks for.
struct Wish {
  bool is_on = false;
  uint64_t bytes = uint64_t{4} << 20U;  ///< of a process' ring
  std::string folder{};                 ///< empty: the runtime folder's; else who asks for it removes the files
  std::string problem{};                ///< what is wrong with the text; empty: nothing
};
/// `text`: "on", "off", "64M" or an absolute path; empty: as `is_on_by_default` says. Pure.
Wish parse_wish(std::string_view text, bool is_on_by_default);

/// Begins to record if the environment asks for it: RINGBOLT_RECORD, or, unless that says no, RINGBOLT_EXPLAIN and
/// RINGBOLT_SANITIZE. `home`: the folder of the cluster, or of the devices outside; files lie in `traces` below. What
/// goes wrong is said, and nothing is recorded then. Once a process; thread-safe.
void begin(const std::string& home, const std::string& cluster);
/// The process ends in its own good time.
void end() noexcept;

inline constexpr std::string_view kSuffix = ".trace";
inline constexpr size_t kMostDead = 32;  ///< files that a folder may have of processes that are gone

/// Removes the oldest files of processes that are gone, until there are `most`; files of others are left alone.
void remove_dead(const std::string& folder, size_t most) noexcept;

}  // namespace ringbolt::trace
