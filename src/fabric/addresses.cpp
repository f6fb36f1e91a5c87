#include "fabric/addresses.h"

#include <fmt/format.h>

#include "base/assert.h"

namespace ringbolt::fabric {

uint32_t subnet_of(const AddressPool& pool, uint32_t cable_id) {
  // Subnets stay within base/16. A /30 has the two addresses that a cable needs, and no more.
  RINGBOLT_ASSERT(pool.prefix_length >= 16 && pool.prefix_length <= 30 && cable_id < pool.most_cables());
  return pool.base + (cable_id << (32 - pool.prefix_length));
}

uint32_t end_address(const AddressPool& pool, uint32_t cable_id, bool is_lower_node) {
  return subnet_of(pool, cable_id) + (is_lower_node ? 1 : 2);
}

uint32_t node_address(const AddressPool& pool, uint32_t node) {
  // .0 and .255.255 of the /16 are left out, which some tools take for the network and for all.
  RINGBOLT_ASSERT(node < 0xffff);
  return pool.loopbacks + node + 1;
}

std::string address_text(uint32_t address) {
  return fmt::format("{}.{}.{}.{}", address >> 24U, address >> 16U & 0xffU, address >> 8U & 0xffU, address & 0xffU);
}

}  // namespace ringbolt::fabric
