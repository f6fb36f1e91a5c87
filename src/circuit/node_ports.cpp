#include "circuit/node_ports.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/byte_writer.h"
#include "bringup/common_type.h"
#include "bringup/subnets.h"

namespace ringbolt::circuit {
namespace {

// Far more than kMostCards ports can have, unless all of a large cluster are at one switch: what is left out makes no
// link.
constexpr uint16_t kMostFound = 1024;
// What a port is.
constexpr uint8_t kIsActive = 1;
constexpr uint8_t kHasCard = 2;

/// Where a port stands among those of all nodes.
struct At {
  size_t node = 0;
  uint16_t port = 0;
  friend auto operator<=>(const At&, const At&) = default;
};

/// One end of a link with the GID that fits the other end.
struct End {
  At at;
  uint8_t gid_index = 0;
};

// Refers to `nodes`, which outlive it. run() once.
class Linking {
 public:
  explicit Linking(const std::vector<NodePorts>& nodes) : nodes_(nodes) {
    for (size_t node = 0; node < nodes.size(); ++node) {
      for (size_t port = 0; port < nodes[node].cards.size(); ++port) {
        note_addresses({node, static_cast<uint16_t>(port)});
      }
    }
    by_subnet_ = bringup::pairs_by_subnet(addresses_);
    for (const auto& pair : by_subnet_.pairs) {
      told_.insert(end_of(pair.a).at);
      told_.insert(end_of(pair.b).at);
    }
    for (const auto& crowd : by_subnet_.crowds) {
      for (const size_t one : crowd) {
        told_.insert(end_of(one).at);
      }
    }
  }

  std::vector<Link> run() {
    for (const auto& pair : by_subnet_.pairs) {
      add(end_of(pair.a), end_of(pair.b));
    }
    for (const auto& crowd : by_subnet_.crowds) {
      for (const size_t a : crowd) {
        // Also with themselves and both ways round, which add() passes over.
        for (const size_t b : crowd) {
          add(end_of(a), end_of(b));
        }
      }
    }
    for (size_t node = 0; node < nodes_.size(); ++node) {
      for (const FoundCable& found : nodes_[node].found) {
        add_found({node, found.port}, found);
      }
    }
    // Their order is that of rails, and must be the same on every member.
    std::ranges::sort(links_, {},
                      [](const Link& link) { return std::tuple(link.a, link.b, link.at_a.port, link.at_b.port); });
    return std::move(links_);
  }

  /// Whether its addresses tell whom it is cabled to.
  bool is_told(At at) const { return told_.contains(at); }
  bool is_usable(At at) const { return is_usable(at, at); }
  /// With each other.
  bool is_usable(At a, At b) const {
    return bringup::common_type(card(a).capabilities, card(b).capabilities, IBV_QPT_RC).has_value();
  }

 private:
  const bringup::PortCard& card(At at) const { return nodes_[at.node].cards[at.port]; }
  bool has_port(At at) const { return at.port < nodes_[at.node].cards.size(); }
  End end_of(size_t address) const { return ends_[address]; }

  void note_addresses(At at) {
    for (const bringup::CardGid& gid : card(at).gids) {
      bringup::AddressOfPort address;
      address.port = n_ports_;
      // What subnets.h calls a rank is a node here: two ports of one node are no pair.
      address.rank = static_cast<uint32_t>(at.node);
      address.gid_index = gid.index;
      address.gid = gid.gid;
      address.type = gid.type;
      addresses_.push_back(address);
      ends_.push_back({at, gid.index});
    }
    ++n_ports_;
  }

  void add_found(At at, const FoundCable& found) {
    for (size_t other = 0; other < nodes_.size(); ++other) {
      const NodePorts& there = nodes_[other];
      const FoundCable back{found.port_there, nodes_[at.node].node, at.port};
      const At end{other, found.port_there};
      if (other != at.node && there.node == found.node && has_port(at) && has_port(end) &&
          std::ranges::find(there.found, back) != there.found.end()) {
        add({at, card(at).gid_index}, {end, card(end).gid_index});
      }
    }
  }

  void add(End a, End b) {
    if (a.at.node == b.at.node || nodes_[a.at.node].node == nodes_[b.at.node].node || !is_usable(a.at, b.at)) {
      return;
    }
    // By the nodes' numbers, not their places: the same link on every member.
    if (nodes_[b.at.node].node < nodes_[a.at.node].node) {
      std::swap(a, b);
    }
    // A port serves a pair of nodes once.
    if (!used_.insert({a.at, b.at.node}).second) {
      return;
    }
    if (!used_.insert({b.at, a.at.node}).second) {
      // Both or none, so that the port of `a` may still serve another one there.
      used_.erase({a.at, b.at.node});
      return;
    }
    const uint32_t rate_a = card(a.at).rate_mbps;
    const uint32_t rate_b = card(b.at).rate_mbps;
    Link link;
    link.a = nodes_[a.at.node].node;
    link.b = nodes_[b.at.node].node;
    link.at_a = {a.at.port, a.gid_index};
    link.at_b = {b.at.port, b.gid_index};
    // An end that does not say how fast it is does not slow down the other.
    link.rate_mbps = rate_a == 0 || rate_b == 0 ? std::max(rate_a, rate_b) : std::min(rate_a, rate_b);
    link.is_active = is_active(a.at) && is_active(b.at);
    links_.push_back(link);
  }

  bool is_active(At at) const {
    const std::vector<bool>& active = nodes_[at.node].is_active;
    return at.port < active.size() && active[at.port];
  }

  const std::vector<NodePorts>& nodes_;
  std::vector<bringup::AddressOfPort> addresses_;
  std::vector<End> ends_;  // [address]
  size_t n_ports_ = 0;
  bringup::SubnetPairs by_subnet_;
  std::set<At> told_;
  std::set<std::pair<At, size_t>> used_;  // a port, and the other node
  std::vector<Link> links_;
};

}  // namespace

std::vector<std::byte> emit(const NodePorts& ports) {
  base::ByteWriter writer;
  const auto is_there = [](const bringup::PortCard& card) { return !card.gids.empty(); };
  std::vector<bringup::PortCard> there;
  std::ranges::copy_if(ports.cards, std::back_inserter(there), is_there);
  const std::vector<std::byte> cards = bringup::emit_cards(there);
  writer.put(static_cast<uint32_t>(cards.size()));
  writer.put_bytes(cards);
  writer.put(static_cast<uint16_t>(ports.cards.size()));
  for (size_t i = 0; i < ports.cards.size(); ++i) {
    const bool is_active = i < ports.is_active.size() && ports.is_active[i];
    writer.put(static_cast<uint8_t>((is_active ? kIsActive : 0) | (is_there(ports.cards[i]) ? kHasCard : 0)));
  }
  const auto n = static_cast<uint16_t>(std::min<size_t>(ports.found.size(), kMostFound));
  writer.put(n);
  for (uint16_t i = 0; i < n; ++i) {
    writer.put(ports.found[i].port);
    writer.put(ports.found[i].node);
    writer.put(ports.found[i].port_there);
  }
  return std::move(writer).bytes();
}

std::optional<NodePorts> parse_node_ports(NodeId node, std::span<const std::byte> bytes) {
  base::ByteReader reader(bytes);
  NodePorts ports;
  ports.node = node;
  auto cards = bringup::parse_cards(reader.take_bytes(reader.take<uint32_t>()));
  if (!reader.is_sound() || !cards) {
    return std::nullopt;
  }
  auto card = cards->begin();
  const auto n_ports = reader.take<uint16_t>();
  for (uint16_t i = 0; i < n_ports && reader.is_sound(); ++i) {
    const auto flags = reader.take<uint8_t>();
    // Cards stand in the order of their ports, without gaps.
    const bool has_card = (flags & kHasCard) != 0;
    if (has_card && card == cards->end()) {
      return std::nullopt;
    }
    ports.cards.push_back(has_card ? std::move(*card++) : bringup::PortCard());
    ports.is_active.push_back(has_card && (flags & kIsActive) != 0);
  }
  // After the loop, which ends with the bytes: not much is allocated for a wrong count.
  if (n_ports > bringup::kMostCards || card != cards->end()) {
    return std::nullopt;
  }
  const auto n = reader.take<uint16_t>();
  for (uint16_t i = 0; i < n && reader.is_sound(); ++i) {
    FoundCable found;
    found.port = reader.take<uint16_t>();
    found.node = reader.take<uint64_t>();
    found.port_there = reader.take<uint16_t>();
    ports.found.push_back(found);
  }
  return reader.is_sound() && reader.is_at_end() ? std::optional(std::move(ports)) : std::nullopt;
}

std::vector<Link> links_between(const std::vector<NodePorts>& nodes) { return Linking(nodes).run(); }

std::vector<Candidate> candidates_for(const std::vector<NodePorts>& nodes, NodeId self) {
  const Linking linking(nodes);
  std::vector<Candidate> candidates;
  const auto own = std::ranges::find(nodes, self, &NodePorts::node);
  if (own == nodes.end()) {
    return candidates;
  }
  const auto own_at = static_cast<size_t>(own - nodes.begin());
  for (uint16_t port = 0; port < own->cards.size(); ++port) {
    for (size_t other = 0; other < nodes.size(); ++other) {
      for (uint16_t there = 0; other != own_at && there < nodes[other].cards.size(); ++there) {
        if (!linking.is_told({own_at, port}) && !linking.is_told({other, there}) &&
            linking.is_usable({own_at, port}, {other, there})) {
          candidates.push_back({port, other, there});
        }
      }
    }
  }
  return candidates;
}

}  // namespace ringbolt::circuit
