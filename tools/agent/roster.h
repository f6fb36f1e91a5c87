#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/unique_fd.h"
#include "cluster/runtime_dir.h"
#include "cluster_state.h"
#include "fabric/graph.h"
#include "ringbolt/status.h"

namespace ringbolt::tools::agent {

/// Which agents of a cluster run, and in which meeting each is: each holds the lock of a file with both for as long as
/// it lives.
class Roster {
 public:
  Roster(cluster::RuntimeDir dir, std::string cluster) : dir_(std::move(dir)), cluster_(std::move(cluster)) {}

  /// An agent's place in it, until its end.
  struct Entry {
    base::UniqueFd lock;
  };
  struct Agent {
    pid_t pid = 0;
    std::optional<uint32_t> meeting = {};  ///< nothing while it waits for all to meet
  };
  /// Of one that waits. Throws UsageError if the node has an agent.
  Entry enter(uint32_t node) const;
  /// Says in which meeting this agent is. Throws base::Error.
  void set_meeting(const Entry& entry, std::optional<uint32_t> meeting) const;
  /// The node's agent; nothing if it has none. Throws base::Error where nobody can tell.
  std::optional<Agent> look(uint32_t node) const;
  std::optional<pid_t> find(uint32_t node) const;
  /// Where its agent writes what happens.
  std::string log_file(uint32_t node) const { return file(node, "log"); }

 private:
  std::string file(uint32_t node, const char* suffix) const;

  cluster::RuntimeDir dir_;
  std::string cluster_;
};

/// Whether the cluster has been taken away under an agent.
bool is_forgotten(const Roster::Entry& entry);

/// Tells agents that run from those that stand still. Not thread-safe.
class Watch {
 public:
  /// To be called time and again: what was seen last must be less than two seconds ago. False for one in a meeting that
  /// has not been seen to move meanwhile, so at the first call too, and for any that is stopped.
  bool runs(uint32_t node, const Roster::Agent& agent, uint64_t now_ns);

 private:
  struct Seen {
    pid_t pid = 0;
    uint64_t switches = 0;   ///< times that it has gone to sleep
    uint64_t looked_ns = 0;  ///< when
    uint64_t moved_ns = 0;   ///< when that was last seen to grow
  };

  std::map<uint32_t, Seen> seen_;
};

/// Whether these cables join all nodes, none farther from another than a group's packets go. Pure. Thread-safe.
bool can_be_group(const fabric::Graph& cabling);

/// Whether the cables that are neither cut nor pulled can_be_group(), and every node has an agent that runs: else no
/// meeting comes about. To be called time and again, as Watch says.
bool can_all_meet(const LiveCluster& live, const Roster& roster, Watch& watch, uint64_t now_ns);

/// The nodes that a meeting has lost, and whether they can be had back. Not thread-safe.
///
/// A meeting takes a second in which the agents carry nothing, and fails for all if one does not come. So it is worth
/// while only when something has changed since a node was lost (its agent waits for one, or stood still and runs again;
/// somebody has plugged in a cable or ended a fault), and only if nobody, lost or not, is missing or stands still.
class Absence {
 public:
  /// `meeting`: the one that all are in.
  Absence(const LiveCluster& live, const Roster& roster, uint32_t meeting);

  /// Looks after the ranks that have failed, and how: whether all should meet anew. To be called time and again.
  bool is_over(const std::map<uint32_t, Status>& failed, uint64_t now_ns);

 private:
  struct Lost {
    uint32_t generation = 0;  ///< of the control page, before
    bool is_changed = false;  ///< in a way that may bring it back
  };

  /// False: it would not come.
  bool would_come(uint32_t node, Lost& lost, uint64_t now_ns);

  const LiveCluster& live_;
  const Roster& roster_;
  const uint32_t meeting_;
  uint32_t generation_;  ///< when last looked at
  std::map<uint32_t, Lost> lost_;
  Watch watch_;
};

}  // namespace ringbolt::tools::agent
