#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/parsed.h"

namespace ringbolt::profile {

/// What a device counts over all processes.
enum class Counted : uint8_t { qp, pd, cq, mr };
inline constexpr size_t kCountedKinds = 4;
using Counts = std::array<uint32_t, kCountedKinds>;

/// "queue pair", "protection domain"...
const char* kind_name(Counted kind);

/// Who holds which objects of one device. A value; not thread-safe: device/ledger.h has the file that holds the text,
/// and its lock. Text form:
///     ringbolt-ledger 1
///     process 4242 started 918273 qp 3 pd 1 cq 2 mr 16
///     leaked qp 0 pd 2 cq 0 mr 0
///     end
struct LedgerBook {
  struct Owner {
    pid_t pid = 0;
    // In clock ticks after the machine's boot (proc_pid_stat(5), field 22).
    uint64_t started = 0;  ///< as /proc/<pid>/stat says: pids are used again
    Counts held{};
    friend bool operator==(const Owner&, const Owner&) = default;
  };
  std::vector<Owner> owners;
  Counts leaked{};  ///< by processes that have died, until the next reboot

  /// Held and leaked; UINT32_MAX when there are more.
  uint32_t total(Counted kind) const;
  /// Adds one object for the process, or takes one back; what is not there can't be taken back. Of more processes than
  /// a text may name (4096) the last ones are not counted.
  void add(pid_t pid, uint64_t started, Counted kind);
  void remove(pid_t pid, uint64_t started, Counted kind);
  /// Takes the owners out that are dead; `leaks`: their protection domains stay behind as leaked. Calls `is_alive`
  /// once for each owner. Objects of other kinds come back in either case: only protection domains stay.
  void bury(const std::function<bool(const Owner&)>& is_alive, bool leaks);
  bool is_empty() const { return owners.empty() && leaked == Counts{}; }

  std::string emit() const;
  /// Any bytes are safe to pass. An error names the line, from 1. Lines after "end" are not looked at; a text without
  /// it was cut short, and is refused.
  static base::Parsed<LedgerBook> parse(std::string_view text);
  friend bool operator==(const LedgerBook&, const LedgerBook&) = default;
};

}  // namespace ringbolt::profile
