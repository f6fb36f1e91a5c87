#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "circuit/node_ports.h"
#include "circuit/own_ports.h"
#include "circuit/paths.h"
#include "membership/announcement.h"

namespace ringbolt::circuit {

/// What a member knows of all others' ports and of the links between their nodes. Of the endpoint's thread alone.
/// Members of one node each look at the same ports, and may differ for a moment; what the member with the lowest
/// number announces counts for all links (nodes()).
class Network {
 public:
  /// `name`: what this member calls itself. `ports` is not owned, and outlives this.
  Network(OwnPorts& ports, NodeId node, MemberId self, std::string name = {});

  /// What this member announces of its node's ports.
  const NodePorts& own() const { return own_; }

  /// Details that can't be read count as a member that is gone.
  void hear(const membership::Announcement& announcement);
  void forget(MemberId member);

  struct Known {
    NodeId node = 0;
    std::string name;
    NodePorts ports;
  };
  /// Null: it is not known, or its ports could not be read. This member knows itself, but for its ports: see own().
  /// Until the next hear() or forget() of that member.
  const Known* find(MemberId member) const;
  /// Counts all changes. Starts with 1, so that whoever has seen 0 plans for the first time.
  uint32_t version() const { return version_; }

  /// Asks the devices which ports work. One that comes up, for the first time or again, may have other addresses than
  /// before, or be cabled to another port: what it is and where it leads is found anew. Whether own() has changed.
  /// May block for a second for each port that has just come up (OwnPorts::look_again()).
  bool look_at_ports(uint64_t now_ns);
  /// Which ports have come up since.
  std::vector<uint16_t> take_come_up() { return std::exchange(come_up_, {}); }
  /// Tries which of this node's ports lead to others' where addresses don't tell; only the first member of a node does.
  /// What is not found is tried again a few times, later and later: a busy machine or device may have been too slow.
  /// May block for as long as bringup::try_candidates() says. Whether anything was found.
  bool try_ports(uint64_t now_ns);

  /// To a member that is known. Empty where no path is usable now; none for a member that is not known.
  std::vector<PlannedPath> paths_to(MemberId to);
  /// What a rail's queue pairs are on the way from hop `i` of a path to the next one: RC where both ports have it.
  struct HopKind {
    ibv_qp_type type = IBV_QPT_RC;
    bool counts_frames = false;  ///< RailPlan::counts_frames
  };
  // Both ends of a hop must come to the same: the next hop is told (QueuePairAddress::is_uc).
  HopKind kind_of_hop(const Path& path, size_t i) const;
  /// One of them is UC: frames may be lost without a word.
  bool may_lose(const Path& path) const;
  /// Why a path is of no use: a port on it that does not work, a member that is gone; empty: it may be.
  std::string objection_to(const Path& path) const;
  /// "n0:rocep1s0f1 to n1:rocep1s0f0", by way of others if it is.
  std::string text_of(const Path& path) const;
  /// The links of this node, for messages.
  std::string text_of_links();

 private:
  /// The ports of each node as its first member tells them, with this one.
  std::vector<NodePorts> nodes() const;
  MembersOfNode members_of_nodes() const;
  const std::vector<Link>& links();
  const NodePorts* ports_of(MemberId member) const;

  bool look_at_port(uint16_t port, uint64_t now_ns);
  void forget_findings(const std::function<bool(const FoundCable&)>& is_old);
  void find_news(const Known& before, const NodePorts& now);

  OwnPorts& ports_;
  const MemberId self_;
  // Its ports stay empty: own_ has them.
  const Known itself_;
  NodePorts own_;
  // Ascending, so that the first of a node's members is the lowest.
  std::map<MemberId, Known> known_;
  // How often, and when it may be next (base::now_ns()).
  struct Tried {
    uint32_t n = 0;
    uint64_t next_ns = 0;
  };
  std::map<FoundCable, Tried> tried_;
  std::vector<Tried> looked_;  ///< [port]: at a port that is active and can't be used yet
  std::vector<uint16_t> come_up_;
  bool has_forgotten_ = false;  ///< own_.found has lost entries that were announced
  uint64_t next_try_ns_ = 0;    ///< of all pairs; 0: at once
  uint32_t tried_version_ = 0;
  uint32_t version_ = 1;
  uint32_t links_version_ = 0;
  std::vector<Link> links_;
};

}  // namespace ringbolt::circuit
