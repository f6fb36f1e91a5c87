#include "bringup/gid.h"

#include <gtest/gtest.h>

#include "bringup/gid_test_support.h"

namespace ringbolt::bringup {
namespace {

using test::gid;

TEST(Gid, is_told_apart_by_its_family) {
  EXPECT_TRUE(is_empty(Gid{}));
  EXPECT_FALSE(is_empty(gid("::1")));
  EXPECT_TRUE(is_ipv4(gid("10.0.0.1")));
  EXPECT_FALSE(is_ipv4(gid("fe80::1")));
  EXPECT_FALSE(is_ipv4(Gid{}));
  for (const char* one : {"fe80::1", "febf::1", "169.254.1.2"}) {
    EXPECT_TRUE(is_link_local(gid(one))) << one;
    EXPECT_FALSE(is_routable(gid(one))) << one;
  }
  for (const char* one : {"::1", "127.0.0.1", "127.77.3.2"}) {
    EXPECT_TRUE(is_loopback(gid(one))) << one;
    EXPECT_FALSE(is_routable(gid(one))) << one;
  }
  for (const char* one : {"10.77.0.1", "192.168.100.2", "169.253.0.1", "2001:db8::1", "fd77:0:0:c::1", "fc00::1"}) {
    EXPECT_TRUE(is_routable(gid(one))) << one;
    EXPECT_FALSE(is_link_local(gid(one))) << one;
  }
  for (const char* one : {"0.0.0.0", "224.0.0.1", "255.255.255.255", "ff02::1", "fec0::1", "::2"}) {
    EXPECT_FALSE(is_routable(gid(one))) << one;
  }
}

TEST(Gid, counts_common_bits_from_the_front) {
  EXPECT_EQ(common_bits(gid("10.0.0.1"), gid("10.0.0.1")), 128U);
  EXPECT_EQ(common_bits(gid("10.0.0.2"), gid("10.0.0.3")), 127U);
  EXPECT_EQ(common_bits(gid("10.0.0.1"), gid("10.0.0.2")), 126U);
  EXPECT_EQ(common_bits(gid("10.0.0.1"), gid("10.0.1.1")), 119U);
  EXPECT_EQ(common_bits(gid("8000::"), gid("::")), 0U);
}

TEST(Gid, is_written_as_people_write_addresses) {
  EXPECT_EQ(text_of(gid("10.77.0.1")), "10.77.0.1");
  EXPECT_EQ(text_of(gid("fe80::5054:ff")), "fe80::5054:ff");
  EXPECT_EQ(gid_of(ibv_gid_of(gid("192.168.100.2"))), gid("192.168.100.2"));
  EXPECT_EQ(ibv_gid_of(gid("192.168.100.2")).raw[12], 192);
}

}  // namespace
}  // namespace ringbolt::bringup
