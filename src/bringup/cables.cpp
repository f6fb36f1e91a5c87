#include "bringup/cables.h"

#include <algorithm>

#include <fmt/format.h>

#include "bringup/matching.h"

namespace ringbolt::bringup {

Cables match_cables(const AllCards& cards, const Evidence& evidence) {
  Matching matching(cards, evidence);
  matching.take_matrix();
  matching.take_subnets();
  // From the strongest evidence to the weakest: what one has matched, the next ones leave alone.
  matching.take_trials();
  return matching.finish();
}

std::vector<TrialSuccess> trial_pairs(const AllCards& cards, const Evidence& evidence, uint32_t rank) {
  Matching matching(cards, evidence);
  matching.take_matrix();
  matching.take_subnets();
  std::vector<TrialSuccess> pairs = matching.open_pairs();
  std::erase_if(pairs, [&](const TrialSuccess& one) { return one.from.rank != rank; });
  std::sort(pairs.begin(), pairs.end());
  return pairs;
}

std::string name_of(const AllCards& cards, PortOfRank port) {
  const PortCard& card = cards[port.rank][port.port];
  return card.port == 1 ? fmt::format("rank {}'s {}", port.rank, card.device)
                        : fmt::format("rank {}'s {} port {}", port.rank, card.device, card.port);
}

}  // namespace ringbolt::bringup
