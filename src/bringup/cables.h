#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bringup/port_card.h"

/// Which port of which rank is cabled to which: by what the ends are, never by where they stand in a list.
namespace ringbolt::bringup {

/// One port of all: cards[rank][port]. `port`: its place among the rank's cards, not the number that the device gives
/// it.
struct PortOfRank {
  uint32_t rank = 0;
  uint32_t port = 0;
  friend auto operator<=>(const PortOfRank&, const PortOfRank&) = default;
};

/// The devices of rank i towards rank j, as JACCL's device file names them: matrix[i][j]. An empty cell says nothing
/// about a cable, only that none is used.
using DeviceMatrix = std::vector<std::vector<std::vector<std::string>>>;

/// `from` went to RTR with the GID of `to` (the one that `to`'s card names first, see trial_pairs()).
struct TrialSuccess {
  PortOfRank from;
  PortOfRank to;
  friend auto operator<=>(const TrialSuccess&, const TrialSuccess&) = default;
};

struct Evidence {
  DeviceMatrix matrix = {};               ///< empty: none is given
  bool are_trials_made = false;           ///< of all pairs of trial_pairs(), by all ranks
  std::vector<TrialSuccess> trials = {};  ///< in any order
};

enum class KnownBy : uint8_t { kMatrix, kSubnet, kTrial };

/// A cable, from the lower rank to the higher. Several between two ranks are rails.
struct Cable {
  PortOfRank a;
  PortOfRank b;
  uint8_t gid_index_a = 0;  ///< what a should use on it, and b
  uint8_t gid_index_b = 0;
  uint32_t rate_mbps = 0;  ///< of the slower end; 0 if neither is known
  KnownBy known_by = KnownBy::kSubnet;
  friend bool operator==(const Cable&, const Cable&) = default;
};

struct UnmatchedPort {
  PortOfRank port;
  std::string reason;
};

struct Cables {
  std::vector<Cable> cables;             ///< by ranks, then the names of the devices: the same on every rank
  std::vector<UnmatchedPort> unmatched;  ///< by rank and port; empty reasons don't occur
  std::vector<std::string> conflicts;    ///< evidence that contradicts itself; each names its ports and what to do
};

/// The cards of all ranks, by rank. Ports of one rank are never cabled to each other here.
using AllCards = std::vector<std::vector<PortCard>>;

/// Decides by (1) the matrix: with one it alone says which ports are used, and where a pair of ranks has several, (2)
/// and (3) say which belong together, and the order in the cells only if all reach all; (2) ports that have a subnet to
/// themselves (subnets.h); (3) for what is left, trials that succeeded at both ends. A port that reaches several others
/// at both ends is at a switch, not at a cable: a conflict. Pure, and the same on every rank. Cards that
/// parse_cards() has taken; any matrix and trials are safe. For all ranks to agree they must have the same cards and
/// the same evidence.
Cables match_cables(const AllCards& cards, const Evidence& evidence);

/// What `rank` should try before match_cables() is asked again: pairs of its own ports and others' that (1) and (2)
/// have left open, in order. Pure. `rank` < cards.size().
std::vector<TrialSuccess> trial_pairs(const AllCards& cards, const Evidence& evidence, uint32_t rank);

/// "rank 2's rdma_en3", with the port's number if it is not 1.
std::string name_of(const AllCards& cards, PortOfRank port);

}  // namespace ringbolt::bringup
