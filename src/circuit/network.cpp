#include "circuit/network.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "bringup/common_type.h"

namespace ringbolt::circuit {
namespace {

/// Again after a quarter of a second, then after twice as long each time: for 16 s in all.
constexpr uint64_t kTryAgainNs = 250'000'000;
constexpr uint32_t kMostTrials = 7;
/// A port is active before it has an address. Again after so long, then after twice as long each time, 3.2 s at most.
constexpr uint64_t kLookAgainNs = 100'000'000;
constexpr uint32_t kMostDoublings = 5;

}  // namespace

Network::Network(OwnPorts& ports, NodeId node, MemberId self, std::string name)
    : ports_(ports), self_(self), itself_{node, std::move(name), {}} {
  own_.node = node;
  own_.cards = ports.cards();
  looked_.resize(own_.cards.size());
  for (uint16_t port = 0; port < own_.cards.size(); ++port) {
    // A port without a card starts as inactive, however it is: look_at_port() then finds out what it is.
    own_.is_active.push_back(own_.cards[port].capabilities.can_connect() && ports.is_active(port));
  }
}

// The endpoint's thread alone, as all functions here: no lock.
void Network::hear(const membership::Announcement& announcement) {
  const MemberId member = announcement.contact.member;
  auto ports = parse_node_ports(announcement.node, announcement.details);
  const auto known = known_.find(member);
  // Counted once, if it was known.
  if (!ports) {
    // What can't be read: of another version of Ringbolt. Such a member is as good as not there.
    version_ += static_cast<uint32_t>(known_.erase(member));
  } else if (known == known_.end() || known->second.node != announcement.node || known->second.ports != *ports) {
    if (known != known_.end()) {
      find_news(known->second, *ports);
    }
    known_[member] = {announcement.node, announcement.name, std::move(*ports)};
    ++version_;
  }
}

void Network::forget(MemberId member) {
  known_.erase(member);
  ++version_;
}

const Network::Known* Network::find(MemberId member) const {
  if (member == self_) {
    return &itself_;
  }
  const auto found = known_.find(member);
  return found == known_.end() ? nullptr : &found->second;
}

/// Ports there that have come back, or have other addresses, may lead to others than before.
void Network::find_news(const Known& before, const NodePorts& now) {
  for (uint16_t port = 0; port < now.cards.size(); ++port) {
    const bool was_there = port < before.ports.cards.size() && before.ports.is_active[port];
    const bool is_new = now.is_active[port] && (!was_there || before.ports.cards[port] != now.cards[port]);
    if (is_new) {
      forget_findings([&](const FoundCable& one) { return one.node == now.node && one.port_there == port; });
    }
  }
}

void Network::forget_findings(const std::function<bool(const FoundCable&)>& is_old) {
  std::erase_if(tried_, [&](const auto& tried) { return is_old(tried.first); });
  // Told with the next look_at_ports(), whose caller announces.
  has_forgotten_ = std::erase_if(own_.found, is_old) > 0 || has_forgotten_;
}

bool Network::look_at_ports(uint64_t now_ns) {
  bool has_changed = std::exchange(has_forgotten_, false);
  for (uint16_t port = 0; port < own_.cards.size(); ++port) {
    has_changed = look_at_port(port, now_ns) || has_changed;
  }
  has_forgotten_ = false;
  version_ += has_changed ? 1 : 0;
  return has_changed;
}

/// Whether it has come or gone.
bool Network::look_at_port(uint16_t port, uint64_t now_ns) {
  Tried& looked = looked_[port];
  if (!ports_.is_active(port)) {
    // When it comes up again, it is looked at without delay.
    looked = {};
    const bool was_active = own_.is_active[port];
    own_.is_active[port] = false;
    return was_active;
  }
  if (own_.is_active[port] || now_ns < looked.next_ns) {
    return false;
  }
  // 100 ms to 3.2 s: kMostDoublings bounds the shift.
  looked.next_ns = now_ns + (kLookAgainNs << looked.n);
  looked.n = std::min(looked.n + 1, kMostDoublings);
  if (!ports_.look_again(port)) {
    return false;
  }
  own_.cards[port] = ports_.cards()[port];
  own_.is_active[port] = true;
  come_up_.push_back(port);
  forget_findings([&](const FoundCable& one) { return one.port == port; });
  return true;
}

// Blocks in devices: as long as the longest trial of a port takes, port after port.
bool Network::try_ports(uint64_t now_ns) {
  if (tried_version_ == version_ && now_ns < next_try_ns_) {
    return false;
  }
  // Before the trials: what they find changes the version, and so leads to another look.
  tried_version_ = version_;
  // Until there is news, unless something below is to be tried again.
  next_try_ns_ = UINT64_MAX;
  // The others hear of its findings by its announcement. The queue pairs of a trial would meet each other's
  // otherwise.
  const auto is_first_here =
      std::ranges::none_of(known_, [&](const auto& one) { return one.second.node == own_.node && one.first < self_; });
  if (!is_first_here) {
    return false;
  }
  const std::vector<NodePorts> all = nodes();
  std::map<uint16_t, std::vector<Candidate>> by_port;
  for (const Candidate& candidate : candidates_for(all, own_.node)) {
    const bool may_work = own_.is_active[candidate.port] && all[candidate.node].is_active[candidate.port_there];
    const FoundCable pair{candidate.port, all[candidate.node].node, candidate.port_there};
    if (!may_work || std::ranges::find(own_.found, pair) != own_.found.end()) {
      continue;
    }
    Tried& tried = tried_[pair];
    // The shift is bounded by kMostTrials.
    if (tried.n < kMostTrials && now_ns >= tried.next_ns) {
      tried.next_ns = now_ns + (kTryAgainNs << tried.n++);
      by_port[candidate.port].push_back(candidate);
    }
    if (tried.n < kMostTrials) {
      next_try_ns_ = std::min(next_try_ns_, tried.next_ns);
    }
  }
  bool has_found = false;
  for (const auto& [port, candidates] : by_port) {
    std::vector<bringup::TrialCandidate> there;
    for (const Candidate& candidate : candidates) {
      const bringup::PortCard& other = all[candidate.node].cards[candidate.port_there];
      there.push_back({other.gid(), other.lid});
    }
    std::vector<int> errors;
    try {
      // All of a port at once, since a trial that fails costs its whole time-out.
      errors = ports_.try_candidates(port, there);
    } catch (const base::Error&) {
      continue;  // the device does not open just now
    }
    for (size_t i = 0; i < candidates.size(); ++i) {
      const FoundCable found{port, all[candidates[i].node].node, candidates[i].port_there};
      if (errors[i] == 0 && std::ranges::find(own_.found, found) == own_.found.end()) {
        own_.found.push_back(found);
        has_found = true;
      }
    }
  }
  version_ += has_found ? 1 : 0;
  return has_found;
}

std::vector<NodePorts> Network::nodes() const {
  std::map<NodeId, NodePorts> first;
  bool is_own_first = true;
  for (const auto& [member, known] : known_) {  // ascending
    // `known_` does not hold this member.
    is_own_first = is_own_first && !(known.node == own_.node && member < self_);
    first.emplace(known.node, known.ports);
  }
  if (is_own_first) {
    first[own_.node] = own_;
  }
  std::vector<NodePorts> all;
  for (auto& [node, ports] : first) {
    all.push_back(std::move(ports));
  }
  return all;
}

MembersOfNode Network::members_of_nodes() const {
  MembersOfNode members;
  members[own_.node].push_back(self_);
  for (const auto& [member, known] : known_) {
    members[known.node].push_back(member);
  }
  // Others come in their order out of the map.
  std::ranges::sort(members[own_.node]);
  return members;
}

const std::vector<Link>& Network::links() {
  if (links_version_ != version_) {
    links_ = links_between(nodes());
    links_version_ = version_;
  }
  return links_;
}

// Empty: nobody knows of a way just now.
std::vector<PlannedPath> Network::paths_to(MemberId to) {
  const Known* const known = find(to);
  if (known == nullptr) {
    return {};
  }
  auto planned = plan_paths(links(), nodes(), members_of_nodes(), {own_.node, self_}, {known->node, to});
  // Of a node's members one may see a port come up before the others do.
  std::erase_if(planned, [&](const PlannedPath& one) { return !objection_to(one.path).empty(); });
  return planned;
}

const NodePorts* Network::ports_of(MemberId member) const {
  if (member == self_) {
    return &own_;
  }
  const Known* const known = find(member);
  // Good until the next hear() or forget().
  return known == nullptr ? nullptr : &known->ports;
}

Network::HopKind Network::kind_of_hop(const Path& path, size_t i) const {
  const NodePorts* const here = ports_of(path[i].member);
  const NodePorts* const there = ports_of(path[i + 1].member);
  const uint16_t exit = path[i].exit.port;
  const uint16_t entry = path[i + 1].entry.port;
  if (here == nullptr || there == nullptr || exit >= here->cards.size() || entry >= there->cards.size()) {
    return {};  // gone meanwhile: the rail will not come about
  }
  const bringup::Capabilities& a = here->cards[exit].capabilities;
  const bringup::Capabilities& b = there->cards[entry].capabilities;
  // Where they have nothing in common there is no link, and no path asks.
  return {bringup::common_type(a, b, IBV_QPT_RC).value_or(IBV_QPT_RC), a.counts_frames || b.counts_frames};
}

bool Network::may_lose(const Path& path) const {
  for (size_t i = 0; i + 1 < path.size(); ++i) {
    if (kind_of_hop(path, i).type == IBV_QPT_UC) {
      return true;
    }
  }
  return false;
}

std::string Network::objection_to(const Path& path) const {
  for (size_t i = 0; i < path.size(); ++i) {
    const NodePorts* const ports = ports_of(path[i].member);
    if (ports == nullptr) {
      return "a member on its way is gone";
    }
    const auto is_down = [&](const PortUse& use) {
      // Paths come out of announcements, and a member may have fewer ports by now than when they were planned.
      return use.port >= ports->is_active.size() || !ports->is_active[use.port];
    };
    if ((i > 0 && is_down(path[i].entry)) || (i + 1 < path.size() && is_down(path[i].exit))) {
      return fmt::format("{}: a port is down", text_of(path));
    }
  }
  return {};
}

std::string Network::text_of(const Path& path) const {
  const auto place = [&](const Hop& hop, const PortUse& use) {
    const NodePorts* const ports = ports_of(hop.member);
    const Known* const known = find(hop.member);
    const std::string device = ports != nullptr && use.port < ports->cards.size() ? ports->cards[use.port].device : "?";
    return hop.member == self_ ? "own " + device : fmt::format("{}'s {}", known == nullptr ? "?" : known->name, device);
  };
  std::string text;
  for (size_t i = 0; i + 1 < path.size(); ++i) {
    text += fmt::format("{}{} to {}", i == 0 ? "" : ", ", place(path[i], path[i].exit),
                        place(path[i + 1], path[i + 1].entry));
  }
  return text;
}

std::string Network::text_of_links() {
  std::string text;
  for (const Link& link : links()) {
    if (link.a != own_.node && link.b != own_.node) {
      continue;
    }
    const NodeId other = link.a == own_.node ? link.b : link.a;
    const PortUse& here = link.a == own_.node ? link.at_a : link.at_b;
    const auto named = std::ranges::find_if(known_, [&](const auto& one) { return one.second.node == other; });
    // Links are those that the node's first member announces, which may say that there are more ports.
    text += fmt::format("{}{} to {}{}", text.empty() ? "" : ", ",
                        here.port < own_.cards.size() ? own_.cards[here.port].device : "?",
                        named == known_.end() ? "?" : named->second.name, link.is_active ? "" : " (down)");
  }
  return text.empty() ? "none" : text;
}

}  // namespace ringbolt::circuit
