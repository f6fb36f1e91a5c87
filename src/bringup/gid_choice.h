#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bringup/gid.h"

namespace ringbolt::bringup {

/// One slot of a port's GID table. A value; `index` is what ibv_ah_attr's sgid_index takes.
struct GidEntry {
  uint8_t index = 0;
  Gid gid = {};
  GidType type = GidType::kUnknown;
  std::string interface = {};                          ///< the network interface that it belongs to; empty if unknown
  std::optional<bool> is_interface_up = std::nullopt;  ///< nothing if unknown
};

/// Where the peer is: the addresses whose first `bits` (of 128; an IPv4 /24 has 120) are those of `network`.
struct Subnet {
  Gid network = {};
  unsigned bits = 0;
  bool contains(const Gid& gid) const { return common_bits(network, gid) >= bits; }
};

struct GidRejection {
  uint8_t index = 0;
  std::string reason;
};

/// Which entry of a table to take, and why none of the others.
struct GidChoice {
  std::optional<GidEntry> chosen = {};
  std::string reason;  ///< why that one; with none: what to do
  std::vector<GidRejection> rejected;

  /// All of it in one line: "GID 1 (10.77.0.1): ...; not 0: ...; not 2: ...". Empty slots are counted, not listed.
  std::string text() const;
};

/// Where a library tells no types: of an address that the table holds twice, the kernel lists RoCE v1 before v2. Pure.
void guess_types(std::vector<GidEntry>& table);

/// Not an empty slot, of no machine's address, or of an interface that is down. Pure.
bool can_be_used(const GidEntry& entry);

/// Wants, in this order: an IPv4 address, an IPv6 address that routers know, a link-local one; of each RoCE v2 (or an
/// unknown type) rather than v1; all in the peer's subnet, if that is given and one is in it. Of equals the first. An
/// entry whose interface is down, or of no address, is never taken. Pure. Takes copies; the table may go.
GidChoice choose_gid(std::span<const GidEntry> table, const std::optional<Subnet>& peers = std::nullopt);

}  // namespace ringbolt::bringup
