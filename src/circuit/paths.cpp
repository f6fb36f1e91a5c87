#include "circuit/paths.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <set>

#include "bringup/common_type.h"

namespace ringbolt::circuit {
namespace {

/// A link as seen from one of its ends.
struct Step {
  const Link* link = nullptr;
  NodeId to = 0;
  PortUse exit;
  PortUse entry;
};

Step step_from(const Link& link, NodeId node) {
  return link.a == node ? Step{&link, link.b, link.at_a, link.at_b} : Step{&link, link.a, link.at_b, link.at_a};
}

uint32_t slower(uint32_t a, uint32_t b) { return a == 0 || b == 0 ? std::max(a, b) : std::min(a, b); }

/// A shortest way over nodes that are not in `taken` and have members, over links that are not in `used` if that can
/// be.
std::optional<std::vector<Step>> shortest(const std::vector<Link>& links, const MembersOfNode& members, NodeId from,
                                          NodeId to, const std::set<NodeId>& taken) {
  std::map<NodeId, Step> by;  // how each node was reached
  std::map<NodeId, NodeId> before;
  // Breadth first: the first way found is a shortest one, and of several the one over the first links, so all members
  // that know the same plan the same.
  std::deque<NodeId> reached = {from};
  before.emplace(from, from);
  for (; !reached.empty() && !before.contains(to); reached.pop_front()) {
    const NodeId node = reached.front();
    for (const Link& link : links) {
      if (!link.is_active || (link.a != node && link.b != node)) {
        continue;
      }
      const Step step = step_from(link, node);
      // A node without members has nobody to relay.
      const bool may_relay = step.to == to || (members.contains(step.to) && !taken.contains(step.to));
      if (may_relay && before.emplace(step.to, node).second) {
        by.emplace(step.to, step);
        reached.push_back(step.to);
      }
    }
  }
  if (!before.contains(to)) {
    return std::nullopt;
  }
  std::vector<Step> steps;
  for (NodeId node = to; node != from; node = before.at(node)) {
    steps.push_back(by.at(node));
  }
  std::ranges::reverse(steps);
  return steps;
}

/// Of several members of a relaying node different circuits take different ones, and keep theirs when others come and
/// go: the one whose number with theirs is the greatest. Source: Thaler and Ravishankar 1998 (rendezvous hashing).
MemberId relay_of(const std::vector<MemberId>& there, MemberId from, MemberId to) {
  const auto weight = [&](MemberId member) {
    uint64_t mixed = (from ^ to ^ member) + 0x9e3779b97f4a7c15U;  // SplitMix64
    mixed = (mixed ^ mixed >> 30U) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ mixed >> 27U) * 0x94d049bb133111ebU;
    return mixed ^ mixed >> 31U;
  };
  return *std::ranges::max_element(there, {}, weight);
}

PlannedPath path_of(const std::vector<Step>& steps, const MembersOfNode& members, MemberId from, MemberId to) {
  PlannedPath planned;
  planned.path.push_back({from, {}, {}});
  for (const Step& step : steps) {
    planned.rate_mbps = slower(planned.rate_mbps, step.link->rate_mbps);
    planned.path.back().exit = step.exit;
    const bool is_last = &step == &steps.back();
    planned.path.push_back({is_last ? to : relay_of(members.at(step.to), from, to), step.entry, {}});
  }
  return planned;
}

std::vector<PlannedPath> within_node(const std::vector<NodePorts>& nodes, NodeId node, MemberId from, MemberId to) {
  const auto ports = std::ranges::find(nodes, node, &NodePorts::node);
  for (uint16_t port = 0; ports != nodes.end() && port < ports->cards.size(); ++port) {
    const bringup::PortCard& card = ports->cards[port];
    if (bringup::common_type(card.capabilities, card.capabilities, IBV_QPT_RC) && port < ports->is_active.size() &&
        ports->is_active[port]) {
      const PortUse use{port, card.gid_index};
      return {{{{from, {}, use}, {to, use, {}}}, card.rate_mbps}};
    }
  }
  return {};
}

}  // namespace

std::vector<PlannedPath> plan_paths(const std::vector<Link>& links, const std::vector<NodePorts>& nodes,
                                    const MembersOfNode& members, std::pair<NodeId, MemberId> from,
                                    std::pair<NodeId, MemberId> to) {
  if (from.first == to.first) {
    return within_node(nodes, from.first, from.second, to.second);
  }
  std::vector<PlannedPath> planned;
  for (const Link& link : links) {
    const bool is_between =
        (link.a == from.first && link.b == to.first) || (link.b == from.first && link.a == to.first);
    if (is_between && link.is_active && planned.size() < kMostRails) {
      planned.push_back(path_of({step_from(link, from.first)}, members, from.second, to.second));
    }
  }
  std::set<NodeId> taken;
  size_t n_steps = 0;
  // After direct links none are looked for: detours take others' memory and processors.
  while (planned.size() < kMostRails && (planned.empty() || n_steps > 1)) {
    const auto steps = shortest(links, members, from.first, to.first, taken);
    if (!steps || (n_steps != 0 && steps->size() > n_steps) || steps->size() >= kMostHops) {
      break;
    }
    n_steps = steps->size();
    planned.push_back(path_of(*steps, members, from.second, to.second));
    for (const Step& step : *steps) {
      // The receiver's node too, which may_relay excepts.
      taken.insert(step.to);
    }
  }
  return planned;
}

}  // namespace ringbolt::circuit
