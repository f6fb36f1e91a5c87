#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bringup/gid.h"

namespace ringbolt::bringup {

/// An address of some port; `port` numbers the ports of all ranks. A port may have many, and each of them several
/// times.
struct AddressOfPort {
  size_t port = 0;
  uint32_t rank = 0;
  uint8_t gid_index = 0;
  Gid gid = {};
  GidType type = GidType::kUnknown;
};

/// How well two addresses serve as the ends of a cable: the greater is taken.
struct Fit {
  bool are_different = false;
  bool speak_alike = false;
  bool are_v2 = false;
  bool are_ipv4 = false;
  unsigned common_bits = 0;
  friend auto operator<=>(const Fit&, const Fit&) = default;
};

/// Pure.
Fit fit_of(const AddressOfPort& a, const AddressOfPort& b);

/// What addresses say about who is cabled to whom. Members index into the addresses that were given.
struct SubnetPairs {
  struct Pair {
    size_t a = 0;
    size_t b = 0;
  };
  std::vector<Pair> pairs;                  ///< of two ports' addresses in a subnet those that fit best
  std::vector<std::vector<size_t>> crowds;  ///< of more than two ports in a subnet, of two ranks at least
  std::vector<size_t> alone;                ///< in a subnet where others are paired
};

/// A cable's subnet holds its two ends and nobody else. Masks are not known, so addresses are looked at in groups of
/// equal /24 (IPv4) or /64 (IPv6). Two ports of different ranks in a group are a pair, however many addresses they have
/// there. In a group of more ports those are pairs that alone share a /30 or /31 (/126 or /127): a plan of small
/// subnets. A larger group without such a pair is a crowd, as are three ports in a /30. Addresses that a port has given
/// itself, loopback, and groups of one rank's ports say nothing. Pure. The answer does not depend on the order of
/// ports, but for which of equally good addresses of a port is named.
SubnetPairs pairs_by_subnet(std::span<const AddressOfPort> addresses);

}  // namespace ringbolt::bringup
