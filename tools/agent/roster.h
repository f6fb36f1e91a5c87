#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/unique_fd.h"
#include "cluster/runtime_dir.h"

namespace ringbolt::tools::agent {

/// Which agents of a cluster run, and in which meeting each is: each holds the lock of a file with both for as long as
/// it lives. And whether somebody is just starting agents.
/// A value without state of its own but names; thread-safe. Locks are of open file descriptions (fcntl(2),
/// F_OFD_SETLK): they end with the descriptor, however the process ends, and not with another one of the same file.
class Roster {
 public:
  Roster(cluster::RuntimeDir dir, std::string cluster) : dir_(std::move(dir)), cluster_(std::move(cluster)) {}

  /// An agent's place in it, until its end.
  struct Entry {
    base::UniqueFd lock;
  };
  struct Agent {
    pid_t pid = 0;
    std::optional<uint32_t> meeting = {};  ///< its number; nothing while it waits for the others
  };
  /// Of one that waits. Throws UsageError if the node has an agent, base::Error if the file can't be had.
  Entry enter(uint32_t node) const;
  /// Says in which meeting this agent is. Throws base::Error.
  void set_meeting(const Entry& entry, std::optional<uint32_t> meeting) const;
  /// The node's agent; nothing if it has none. Throws base::Error where nobody can tell.
  std::optional<Agent> look(uint32_t node) const;
  /// Its pid alone. What is true of it may have changed by the time that this returns.
  std::optional<pid_t> find(uint32_t node) const;
  /// From now on until the descriptor is closed, agents are being started: none calls the others to a meeting, which
  /// would go without those that have not entered yet. Throws base::Error.
  /// Shared: several may start agents at the same time.
  base::UniqueFd begin_starting() const;
  bool is_starting() const;
  /// Where its agent writes what happens.
  std::string log_file(uint32_t node) const { return file(node, "log"); }

 private:
  std::string file(uint32_t node, const char* suffix) const;

  cluster::RuntimeDir dir_;
  std::string cluster_;
};

/// Whether the cluster has been taken away under an agent.
bool is_forgotten(const Roster::Entry& entry);

/// Whether an agent is stopped, by a signal or a debugger.
/// False where /proc says nothing of it.
bool is_stopped(const Roster::Agent& agent);

/// Tells agents that run from those that stand still. Not thread-safe.
class Watch {
 public:
  /// To be called time and again: what was seen last must be less than two seconds ago. Nothing of one in a meeting
  /// that has been watched for less than two seconds and has not been seen to move yet; false if it has not moved for
  /// that long, and for any that is stopped.
  std::optional<bool> runs(uint32_t node, const Roster::Agent& agent, uint64_t now_ns);

 private:
  struct Seen {
    pid_t pid = 0;
    uint64_t switches = 0;   ///< times that it has gone to sleep
    uint64_t looked_ns = 0;  ///< when
    uint64_t since_ns = 0;   ///< looked at time and again since then
    uint64_t moved_ns = 0;   ///< when that was last seen to grow
  };

  std::map<uint32_t, Seen> seen_;
};

}  // namespace ringbolt::tools::agent
