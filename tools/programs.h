#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace ringbolt::tools {

/// A port that a process has open.
struct PortUse {
  std::string device;
  uint64_t moved = 0;  ///< packets and words, both ways; only how it changes says something
  friend bool operator==(const PortUse&, const PortUse&) = default;
};

/// A process that has a device open: it holds the lock of its slot.
struct Program {
  pid_t pid = 0;
  std::string command;  ///< as the kernel names it; empty if it just ended
  std::string node =
      {};  ///< of a cluster of hosts the node whose machine it runs on; else where add_port_uses() says so
  std::vector<PortUse> ports = {};  ///< add_port_uses() says so

  /// "ib_send_lat (pid 71)".
  std::string text() const;
};

/// The process `pid`, by the name that the kernel has for it.
Program program_of(pid_t pid);

/// The processes that hold slots in the folder `slots`, by pid. Files that nobody holds are passed over.
/// Takes the shared lock of each for a moment, so that a process which opens a device just then takes another slot.
/// Throws base::Error where a lock can't be asked: somebody may hold it.
std::vector<Program> running_programs(const std::string& slots);

/// Tells every process of `slots` that the control page has changed. Never blocks: whoever can't be told looks by
/// itself a little later. Returns how many were told. Throws base::Error where the folder can't be listed.
size_t poke_programs(const std::string& slots);

/// "a (pid 1), b (pid 2)".
std::string list_programs(const std::vector<Program>& programs);

}  // namespace ringbolt::tools
