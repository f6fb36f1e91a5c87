#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/roster.h"
#include "cluster_state.h"
#include "fabric/graph.h"
#include "ringbolt/status.h"

namespace ringbolt::tools::agent {

/// Agents that meet, or are called to. A value.
struct Meeting {
  uint32_t number = 0;               ///< later ones have greater numbers
  uint16_t port = 0;                 ///< at which the first node's agent waits for the others
  std::vector<uint32_t> nodes = {};  ///< ascending; the place of a node is its agent's rank
  friend bool operator==(const Meeting&, const Meeting&) = default;
};

/// What is in the file: the number of the last meeting, and those that no later one has a node of.
struct MeetingsText {
  uint32_t last = 0;
  std::vector<Meeting> meetings = {};
  friend bool operator==(const MeetingsText&, const MeetingsText&) = default;
};
std::string emit(const MeetingsText& text);
/// Nothing for a text that emit() would not write.
/// Numbers of nodes are not compared with the cluster's: the file is of the agents' own user.
std::optional<MeetingsText> parse_meetings(const std::string& text);

/// Who meets, as a cluster's agents agree upon it in a file: docs/formats/overlay.md. Thread-safe.
/// Each call locks the file, for five seconds at most where somebody holds it; last() and of() then find nothing.
class Meetings {
 public:
  explicit Meetings(std::string path) : path_(std::move(path)) {}

  /// The number of the last one; 0: there was none.
  uint32_t last() const;
  /// The last one that `node` was called to.
  std::optional<Meeting> of(uint32_t node) const;
  /// Calls `nodes`, one of which is `node`, to meet. If somebody has called `node` to another one than number `known`
  /// meanwhile, that is the one that it returns. Throws base::Error.
  Meeting call(uint32_t node, const std::vector<uint32_t>& nodes, uint32_t known) const;

 private:
  std::string path_;
};

/// The nodes that these cables join with `node`, by way of such as `comes` [node] names alone: ascending, `node` among
/// them. Pure. Thread-safe.
std::vector<uint32_t> joined_with(const fabric::Graph& cabling, const std::vector<bool>& comes, uint32_t node);

/// Whether the cables between these nodes join them all, none farther from another than a group's packets go. Pure.
/// Thread-safe.
bool can_be_group(const fabric::Graph& cabling, const std::vector<uint32_t>& nodes);

/// The cables of a cluster that are neither cut nor pulled out by a fault. As the control page was when it was last
/// refreshed, which this does not do; the file of faults is read each time. Loopback plugs are left out.
fabric::Graph usable_cabling(const LiveCluster& live);

/// Of each node that is none of `nodes`, ascending: its number, its name, and why it is away. Refreshes the control
/// page. Throws base::Error, as Roster::look() does.
std::vector<std::string> words_of_absent(const LiveCluster& live, const Roster& roster,
                                         const std::vector<uint32_t>& nodes);

/// Whom an agent would have in a meeting. Not thread-safe.
///
/// A meeting takes a second in which its agents carry nothing, and fails for all if one does not come. So who is lost
/// is called again only when something has changed since (its agent waits for a meeting, or stood still and runs again;
/// somebody has plugged in a cable or ended a fault), and only those are called who run and are joined by cables.
class Attendance {
 public:
  /// The first two must outlive it.
  Attendance(const LiveCluster& live, const Roster& roster, uint32_t node);

  /// The meeting that this agent is in from now on, of which nobody is lost yet; nothing: it is in none.
  void set_meeting(const std::optional<Meeting>& meeting);
  /// The nodes of a better one, this agent's among them; empty: there is none, or it can't be told yet. `failed`: nodes
  /// whose agents this meeting has lost, and how. To be called time and again, as Watch says.
  /// `now_ns`: of base::now_ns(). Reads a file of each node.
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
