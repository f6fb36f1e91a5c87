#include "bringup/subnets.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace ringbolt::bringup {
namespace {

// Prefix lengths are no part of a GID: usual ones are assumed, /24 and /64, and the smallest that hold two ends.
constexpr unsigned kIpv4Bits = 96;  // that come before an IPv4 address
constexpr unsigned kGroupBitsOfIpv4 = kIpv4Bits + 24;
constexpr unsigned kGroupBitsOfIpv6 = 64;
constexpr unsigned kSmallSubnetBits = 126;  // both of IPv4's /30 and of IPv6's /126

// The first `bits` of the address, zeros behind them. IPv4 counts in its mapped form.
Gid network_of(const Gid& gid, unsigned bits) {
  Gid network = gid;
  for (unsigned i = bits; i < 128; ++i) {
    network[i / 8] = static_cast<uint8_t>(network[i / 8] & ~(0x80U >> (i % 8)));
  }
  return network;
}

// Used once. Indices of members are those of the constructor's addresses.
class Grouping {
 public:
  explicit Grouping(std::span<const AddressOfPort> addresses) : addresses_(addresses) {}

  SubnetPairs run() {
    for (const auto& [network, members] : groups_of(all_routable(), 0)) {
      settle(members);
    }
    return std::move(result_);
  }

 private:
  using Members = std::vector<size_t>;

  Members all_routable() const {
    Members members;
    for (size_t i = 0; i < addresses_.size(); ++i) {
      if (is_routable(addresses_[i].gid)) {
        members.push_back(i);
      }
    }
    return members;
  }

  /// By network of `bits`; 0: of a usual size for the family.
  std::map<Gid, Members> groups_of(const Members& members, unsigned bits) const {
    std::map<Gid, Members> groups;
    for (const size_t i : members) {
      const Gid& gid = addresses_[i].gid;
      const unsigned usual = is_ipv4(gid) ? kGroupBitsOfIpv4 : kGroupBitsOfIpv6;
      groups[network_of(gid, bits == 0 ? usual : bits)].push_back(i);
    }
    return groups;
  }

  size_t n_ranks(const Members& members) const {
    std::set<uint32_t> ranks;
    for (const size_t i : members) {
      ranks.insert(addresses_[i].rank);
    }
    return ranks.size();
  }

  size_t n_ports(const Members& members) const {
    std::set<size_t> ports;
    for (const size_t i : members) {
      ports.insert(addresses_[i].port);
    }
    return ports.size();
  }

  /// Of two ports' addresses: the first of those that fit best.
  void add_pair(const Members& members) {
    // The first of equal ones: the result depends on the order of the addresses alone.
    std::optional<std::pair<Fit, SubnetPairs::Pair>> best;
    for (const size_t a : members) {
      for (const size_t b : members) {
        const Fit fit = fit_of(addresses_[a], addresses_[b]);
        if (addresses_[a].port < addresses_[b].port && (!best || fit > best->first)) {
          best.emplace(fit, SubnetPairs::Pair{a, b});
        }
      }
    }
    // There is one: two ports, so some pair has a.port < b.port.
    result_.pairs.push_back(best->second);
  }

  void settle(const Members& group) {
    // A machine's own ports say nothing about cables to others.
    if (n_ranks(group) < 2) {
      return;
    }
    // Two ports of two ranks, alone in their network: a cable.
    if (n_ports(group) == 2) {
      add_pair(group);
      return;
    }
    Members left;
    bool has_pair = false;
    for (const auto& [network, members] : groups_of(group, kSmallSubnetBits)) {
      if (n_ranks(members) >= 2 && n_ports(members) == 2) {
        add_pair(members);
        has_pair = true;
      } else if (n_ranks(members) >= 2) {
        result_.crowds.push_back(members);
      } else {
        left.insert(left.end(), members.begin(), members.end());
      }
    }
    // Next to small subnets, who is left over has a small subnet too, whose other end is missing.
    if (has_pair || left.size() < group.size()) {
      result_.alone.insert(result_.alone.end(), left.begin(), left.end());
    } else {
      result_.crowds.push_back(group);
    }
  }

  std::span<const AddressOfPort> addresses_;
  SubnetPairs result_;
};

}  // namespace

Fit fit_of(const AddressOfPort& a, const AddressOfPort& b) {
  return {.are_different = a.gid != b.gid,
          .speak_alike = speak_alike(a.type, b.type),
          .are_v2 = a.type != GidType::kRoceV1 && b.type != GidType::kRoceV1,
          .are_ipv4 = is_ipv4(a.gid) && is_ipv4(b.gid),
          .common_bits = common_bits(a.gid, b.gid)};
}

SubnetPairs pairs_by_subnet(std::span<const AddressOfPort> addresses) { return Grouping(addresses).run(); }

}  // namespace ringbolt::bringup
