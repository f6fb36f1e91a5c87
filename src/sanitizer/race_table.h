#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"

namespace ringbolt::sanitizer {

/// What a request does to the memory of a peer.
enum class Access : uint8_t { read, write, atomic };

/// Two such accesses may be under way at once.
constexpr bool are_compatible(Access one, Access other) { return one != Access::write && other != Access::write; }

/// The requests under way of all processes that are sanitized and share a runtime folder, in memory that they share: a
/// file there, with a mutex that outlives who dies with it. Not thread-safe within a process.
/// Owns a mapping; the file stays. Entries of a process that dies stay until one overlaps them, or the table is full.
/// What the file holds other processes have written: places and numbers are bounded before they are used.
class RaceTable {
 public:
  struct Entry {
    uint64_t peer;  ///< whose memory: a process, as far as it can be told apart; never 0
    uint64_t first;
    uint64_t length;
    uint32_t rkey;
    uint32_t qpn;
    int32_t pid;
    Access access;
  };
  static constexpr uint32_t kPlaces = 4096;
  /// A full table is looked through for the dead at most so often: the kernel is asked for each of its processes.
  static constexpr uint64_t kSweepPauseNs = 1'000'000'000;

  /// Where the file can't be had the table is empty for good: then no races between processes are found.
  /// `clock`: CLOCK_MONOTONIC in nanoseconds, asked only while the table is full.
  /// Blocks while another process makes the file.
  explicit RaceTable(const std::string& path, uint64_t (*clock)() = base::now_ns);
  RaceTable(const RaceTable&) = delete;
  RaceTable& operator=(const RaceTable&) = delete;
  ~RaceTable();

  /// Its place, or nothing where there is no room. `other`: a request of another process that races with it, if any,
  /// which its process is told as well.
  /// Blocks while another process looks at the table, which goes through all entries in use.
  std::optional<uint32_t> enter(const Entry& entry, std::optional<Entry>& other);
  /// The request is complete. A request of another process that came meanwhile and raced with it.
  std::optional<Entry> leave(uint32_t place);

 private:
  struct Page;
  /// Frees the places of processes that are gone, if that was not tried just before: the first of them, if any.
  std::optional<uint32_t> sweep(int32_t own_pid);
  Page* page_ = nullptr;
  uint64_t (*clock_)();
  uint64_t next_sweep_ns_ = 0;  // of this process, whatever the others do
};

}  // namespace ringbolt::sanitizer
