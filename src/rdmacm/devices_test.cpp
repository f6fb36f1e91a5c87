// Which GID of a port stands for an address of this host.

#include "rdmacm/devices.h"

#include <gtest/gtest.h>

namespace ringbolt::rdmacm {
namespace {

/// A GID index has eight bits: tables have up to 256 entries.
constexpr size_t kLongestTable = 256;

wire::Address ipv6(std::initializer_list<uint8_t> first, uint8_t last) {
  wire::Address address{};
  std::ranges::copy(first, address.begin());
  address.back() = last;
  return address;
}

/// A port whose table has link-local addresses alone, each another one.
Device full_of_link_local() {
  Device device;
  device.gid_table_length = kLongestTable;
  for (size_t i = 0; i < kLongestTable; ++i) {
    device.gids.push_back(ipv6({0xfe, 0x80}, static_cast<uint8_t>(i)));
  }
  return device;
}

TEST(GidFor, an_address_in_a_table_without_one_of_its_family_is_found_in_a_table_of_any_length) {
  const Device device = full_of_link_local();
  EXPECT_EQ(device.index_for(wire::ipv4_address(10, 0, 0, 1)), 1);
  EXPECT_EQ(device.index_for(ipv6({0xfd}, 9)), 1);
}

TEST(GidFor, an_address_that_the_port_stands_for_is_the_first_of_its_family) {
  Device device = full_of_link_local();
  device.gids[250] = wire::ipv4_address(10, 0, 0, 2);
  device.gids[255] = ipv6({0xfd}, 3);
  EXPECT_EQ(device.index_for(wire::ipv4_address(10, 0, 0, 1)), 250);
  EXPECT_EQ(device.index_for(ipv6({0xfd}, 9)), 255);
}

TEST(GidFor, an_address_of_the_table_is_that_one) {
  Device device = full_of_link_local();
  EXPECT_EQ(device.index_for(device.gids[0]), 0);
  EXPECT_EQ(device.index_for(device.gids[255]), 255);
  device.gids.assign(2, {});
  device.gids[0] = ipv6({0xfe, 0x80}, 1);
  EXPECT_EQ(device.index_for(wire::ipv4_address(10, 0, 0, 1)), 0) << "the second place is empty";
}

}  // namespace
}  // namespace ringbolt::rdmacm
