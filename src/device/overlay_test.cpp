#include "device/gids.h"
#include "device/overlay.h"

#include <gtest/gtest.h>

#include "cluster/address.h"
#include "device/gid_table.h"
#include "device/packet_sizes.h"

namespace ringbolt::device {
namespace {

TEST(Overlay, addresses_tell_the_node) {
  for (uint32_t node = 0; node < 250; ++node) {
    const wire::Address six = address_of(link_local_gid(cluster::overlay_guid(node)));
    const wire::Address four = address_of(mapped_gid(cluster::overlay_ipv4(node)));
    EXPECT_EQ(overlay_place(six), node + 1);
    EXPECT_EQ(overlay_place(four), node + 1);
    EXPECT_EQ(overlay_address(address_of(link_local_gid(cluster::overlay_guid(7))), static_cast<uint8_t>(node + 1)), six);
    EXPECT_EQ(overlay_address(address_of(mapped_gid(cluster::overlay_ipv4(7))), static_cast<uint8_t>(node + 1)), four);
  }
}

TEST(Overlay, other_devices_addresses_are_none_of_its) {
  EXPECT_FALSE(overlay_place(address_of(link_local_gid(cluster::port_guid("ring4", 0, 0)))));
  EXPECT_FALSE(overlay_place(address_of(mapped_gid(0x7f4d0002))));
  EXPECT_FALSE(overlay_place(address_of(link_local_gid(cluster::kOverlayGuid)))) << "of no node";
  EXPECT_FALSE(overlay_place(address_of(mapped_gid(cluster::kOverlayIpv4)))) << "of no node";
}

}  // namespace
}  // namespace ringbolt::device
