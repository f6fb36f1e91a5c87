#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "bringup/gid.h"

namespace ringbolt::bringup {

/// An address of some port; `port` numbers the ports of all ranks.
struct AddressOfPort {
  size_t port = 0;
  uint32_t rank = 0;
  uint8_t gid_index = 0;
  Gid gid = {};
};

/// What addresses say about who is cabled to whom. Members index into the addresses that were given.
struct SubnetPairs {
  struct Pair {
    size_t a = 0;
    size_t b = 0;
  };
  std::vector<Pair> pairs;
  std::vector<std::vector<size_t>> crowds;  ///< more than two in a subnet, of two ranks at least
  std::vector<size_t> alone;                ///< in a subnet where others are paired
};

/// A cable's subnet holds its two ends and nobody else. Masks are not known, so addresses are looked at in groups of
/// equal /24 (IPv4) or /64 (IPv6). Two of different ranks in a group are a pair. In a larger one those are pairs that
/// alone share a /30 or /31 (/126 or /127): a plan of small subnets. A larger group without such a pair is a crowd, as
/// are three in a /30. Addresses that a port has given itself, loopback, and groups of one rank's ports say nothing.
/// Pure.
SubnetPairs pairs_by_subnet(std::span<const AddressOfPort> addresses);

}  // namespace ringbolt::bringup
