#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bringup/cables.h"

namespace ringbolt::bringup {

/// The steps of match_cables(), one after the other. Used by cables.cpp alone. Not thread-safe. Refers to cards and
/// evidence, which outlive it. take_matrix(), take_subnets(), take_trials(), finish(), in this order.
class Matching {
 public:
  Matching(const AllCards& cards, const Evidence& evidence);

  // Each may add cables and conflicts to the result, and never takes back what an earlier one has found.
  void take_matrix();
  void take_subnets();
  void take_trials();
  /// What may still be tried, with the pairs in both directions.
  std::vector<TrialSuccess> open_pairs() const;
  // Moves the result out: last, and once.
  Cables finish();

 private:
  /// The cells [i][j] and [j][i] where one of them names more than one device: they say which ports, not which pairs.
  struct Bundle {
    std::vector<PortOfRank> of_lower;
    std::vector<PortOfRank> of_higher;
  };

  // `port` must be of all_ports(): indices are not checked.
  const PortCard& card(PortOfRank port) const { return cards_[port.rank][port.port]; }
  bool is_matched(PortOfRank port) const { return matched_.contains(port); }
  bool may_pair(PortOfRank a, PortOfRank b) const;
  std::vector<PortOfRank> all_ports() const;
  bool has_matrix_shape();
  // The ports that cell [from][to] names; those that are not usable there become conflicts.
  std::vector<PortOfRank> cell(uint32_t from, uint32_t to);
  void take_cells(uint32_t lower, uint32_t higher);
  // Both count as matched from here on. `gid_indices`: of a and b; else chosen so that their types agree.
  void add(PortOfRank a, PortOfRank b, KnownBy known_by, std::optional<std::pair<uint8_t, uint8_t>> gid_indices = {});
  void pair_by_order_where_all_reach_all(const std::set<TrialSuccess>& mutual);
  void report_one_sided(const std::set<TrialSuccess>& trials);
  void note(PortOfRank port, std::string reason) { reasons_.emplace(port, std::move(reason)); }
  std::string names(const std::vector<PortOfRank>& ports) const;

  const AllCards& cards_;
  const Evidence& evidence_;
  Cables result_;
  std::set<PortOfRank> matched_;
  std::set<PortOfRank> barred_;  ///< in a conflict already: no further evidence is heard
  // The first reason of a port stays: it is of the strongest evidence.
  std::map<PortOfRank, std::string> reasons_;
  std::vector<Bundle> bundles_;
};

}  // namespace ringbolt::bringup
