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
/// The recorder is never destroyed: threads may write to it until the process is gone. A forked child records nothing
/// (pthread_atfork(3)).
void begin(const std::string& home, const std::string& cluster);
/// The process ends in its own good time.
/// No effect where nothing is recorded. begin() may follow, where a program closes its devices and opens others.
void end() noexcept;

inline constexpr std::string_view kSuffix = ".trace";
/// Of the runtime folder alone; a folder that was asked for is tidied by whoever asked.
inline constexpr size_t kMostDead = 32;  ///< files that a folder may have of processes that are gone

/// Removes the oldest files of processes that are gone, until there are `most`; files of others are left alone.
/// A process is gone if none of its number began at the same time (base::is_same_process()). Several processes may do
/// it at the same time.
void remove_dead(const std::string& folder, size_t most) noexcept;

}  // namespace ringbolt::trace
