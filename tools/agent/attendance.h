#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/meetings.h"
#include "agent/roster.h"
#include "cluster_state.h"
#include "fabric/graph.h"
#include "ringbolt/status.h"

namespace ringbolt::tools::agent {

/// The nodes that these cables join with `node`, by way of such as `comes` [node] names alone: ascending, `node` among
/// them. Pure. Thread-safe.
std::vector<uint32_t> joined_with(const fabric::Graph& cabling, const std::vector<bool>& comes, uint32_t node);

/// Whether the cables between these nodes join them all, none farther from another than a group's packets go. Pure.
/// Thread-safe.
bool can_be_group(const fabric::Graph& cabling, const std::vector<uint32_t>& nodes);

/// The cables of a cluster that are neither cut nor pulled out by a fault.
fabric::Graph usable_cabling(const LiveCluster& live);

/// Of each node that is none of `nodes`, ascending: its number, its name, and why it is away.
std::vector<std::string> words_of_absent(const LiveCluster& live, const Roster& roster,
                                         const std::vector<uint32_t>& nodes);

/// Whom an agent would have in a meeting. Not thread-safe.
///
/// A meeting takes a second in which its agents carry nothing, and fails for all if one does not come. So who is lost
/// is called again only when something has changed since (its agent waits for a meeting, or stood still and runs again;
/// somebody has plugged in a cable or ended a fault), and only those are called who run and are joined by cables.
class Attendance {
 public:
  Attendance(const LiveCluster& live, const Roster& roster, uint32_t node);

  /// The meeting that this agent is in from now on, of which nobody is lost yet; nothing: it is in none.
  void set_meeting(const std::optional<Meeting>& meeting);
  /// The nodes of a better one, this agent's among them; empty: there is none, or it can't be told yet. `failed`: nodes
  /// whose agents this meeting has lost, and how. To be called time and again, as Watch says.
  std::vector<uint32_t> wanted(const std::map<uint32_t, Status>& failed, uint64_t now_ns);

 private:
  struct Lost {
    uint32_t generation = 0;  ///< of the control page, before
    bool is_changed = false;  ///< in a way that may bring it back
  };

  bool is_member(uint32_t node) const;
  /// Nothing: that can't be told yet.
  std::optional<bool> would_come(uint32_t node, const std::map<uint32_t, Status>& failed, uint64_t now_ns);

  const LiveCluster& live_;
  const Roster& roster_;
  const uint32_t node_;
  std::optional<Meeting> meeting_;
  uint32_t generation_ = 0;  ///< when last looked at
  std::map<uint32_t, Lost> lost_;
  Watch watch_;
};

}  // namespace ringbolt::tools::agent
