#include "cluster/ip_address.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace ringbolt::cluster {
namespace {

IpAddress parsed(std::string_view text) {
  const std::optional<IpAddress> address = IpAddress::parse(text);
  EXPECT_TRUE(address) << text;
  return address.value_or(IpAddress{});
}

TEST(IpAddress, reads_and_writes_both_families) {
  for (const char* text : {"10.77.0.1/24", "0.0.0.0/0", "255.255.255.255/32", "fd77:0:0:3::1/64", "fe80::52:42ff:1/10",
                           "::/0", "::1/128"}) {
    EXPECT_EQ(parsed(text).text_with_prefix(), text);
  }
  EXPECT_EQ(parsed("10.0.0.1").prefix_bits, 32);
  EXPECT_EQ(parsed("fd00::1").prefix_bits, 128);
  EXPECT_EQ(parsed("10.77.0.1/24").ipv4(), 0x0a4d0001U);
  EXPECT_EQ(parsed("10.77.0.1/24"), IpAddress::from_ipv4(0x0a4d0001U, 24));
  EXPECT_EQ(parsed("fd00::1").ipv4(), 0U);
}

TEST(IpAddress, refuses_what_is_none) {
  for (const char* text : {"", "/", "/24", "10.77.0", "10.77.0.256", "10.77.0.1/33", "10.77.0.1/", "10.77.0.1/-1",
                           "10.77.0.1/24 ", " 10.77.0.1", "fe80::1%en2", "fd00::1/129", "fd00::1/1x", "::ffff:1.2.3.4",
                           "1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa", "n0"}) {
    EXPECT_FALSE(IpAddress::parse(text)) << text;
  }
}

TEST(IpAddress, tells_link_local_addresses) {
  EXPECT_TRUE(parsed("fe80::1").is_link_local());
  EXPECT_TRUE(parsed("febf::1").is_link_local());
  EXPECT_FALSE(parsed("fec0::1").is_link_local());
  EXPECT_FALSE(parsed("169.254.0.1").is_link_local());
}

TEST(IpAddress, compares_subnets_by_the_shorter_prefix) {
  EXPECT_TRUE(parsed("10.0.0.1/30").shares_subnet(parsed("10.0.0.2/30")));
  EXPECT_FALSE(parsed("10.0.0.1/30").shares_subnet(parsed("10.0.0.5/30")));
  EXPECT_TRUE(parsed("10.0.0.1/30").shares_subnet(parsed("10.0.0.5/24")));
  EXPECT_TRUE(parsed("fd77:0:0:1::1/64").shares_subnet(parsed("fd77:0:0:1::2/64")));
  EXPECT_FALSE(parsed("fd77:0:0:1::1/64").shares_subnet(parsed("fd77:0:0:2::2/64")));
  EXPECT_FALSE(parsed("::/0").shares_subnet(parsed("0.0.0.0/0")));
  EXPECT_TRUE(parsed("10.0.0.1/32").shares_subnet(parsed("10.0.0.1/32")));
}

TEST(IpAddress, never_crashes_on_any_text) {
  rc::check([](const std::string& text) {
    if (const std::optional<IpAddress> address = IpAddress::parse(text)) {
      RC_ASSERT(IpAddress::parse(address->text_with_prefix()) == address);
    }
  });
}

}  // namespace
}  // namespace ringbolt::cluster
