#pragma once

#include <cstdint>
#include <string>

namespace ringbolt::fabric {

/// IPv4 addresses of a plan: a subnet for each cable, made of its id alone, so that no cable's subnet depends on
/// another. Addresses are in host order.
struct AddressPool {
  uint32_t base = 0x0a4d0000;       ///< 10.77.0.0/16, of the cables
  uint32_t prefix_length = 30;      ///< of a cable's subnet: 30, or 24 for what matches by /24
  uint32_t loopbacks = 0x0a4c0000;  ///< 10.76.0.0/16, of the nodes

  uint32_t most_cables() const { return 1U << (prefix_length - 16); }
  friend bool operator==(const AddressPool&, const AddressPool&) = default;
};

/// The subnet of a cable; its id is below most_cables(). Thread-safe.
uint32_t subnet_of(const AddressPool& pool, uint32_t cable_id);

/// The address of a cable's end: the first of the subnet for the lower node, the second for the higher. Thread-safe.
uint32_t end_address(const AddressPool& pool, uint32_t cable_id, bool is_lower_node);

/// The address of a node itself (a /32), to which relayed routes go: below 65,535 nodes. Thread-safe.
uint32_t node_address(const AddressPool& pool, uint32_t node);

/// "10.77.0.4". Thread-safe.
std::string address_text(uint32_t address);

}  // namespace ringbolt::fabric
