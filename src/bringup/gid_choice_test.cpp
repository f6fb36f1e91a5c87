#include "bringup/gid_choice.h"

#include <gmock/gmock.h>

#include "bringup/gid_test_support.h"

namespace ringbolt::bringup {
namespace {

using test::gid;
using testing::HasSubstr;

GidEntry entry(uint8_t index, const std::string& text, GidType type = GidType::kUnknown) {
  return {.index = index, .gid = text.empty() ? Gid{} : gid(text), .type = type};
}

std::string reason_against(const GidChoice& choice, uint8_t index) {
  for (const GidRejection& one : choice.rejected) {
    if (one.index == index) {
      return one.reason;
    }
  }
  return "not rejected";
}

/// What Apple documents: EUI-64, IPv4, another link-local.
TEST(GidChoice, takes_the_ipv4_entry_of_a_mac) {
  const std::vector<GidEntry> table = {entry(0, "fe80::1122:33ff:fe34:4556"), entry(1, "169.254.1.2"),
                                       entry(2, "fe80::9")};
  const GidChoice choice = choose_gid(table);
  ASSERT_TRUE(choice.chosen);
  EXPECT_EQ(choice.chosen->index, 1);
  EXPECT_THAT(choice.reason, HasSubstr("IPv4"));
  EXPECT_THAT(reason_against(choice, 0), HasSubstr("is link-local IPv6, and there is an IPv4 address"));
  EXPECT_EQ(choice.rejected.size(), 2U);
}

TEST(GidChoice, finds_the_ipv4_entry_wherever_it_is) {
  const std::vector<GidEntry> table = {entry(0, "fe80::1"), entry(1, ""), entry(2, "169.254.1.2"), entry(3, "")};
  const GidChoice choice = choose_gid(table);
  EXPECT_EQ(choice.chosen->index, 2);
  EXPECT_EQ(reason_against(choice, 1), "the slot is empty");
  EXPECT_THAT(choice.text(), HasSubstr("; 2 empty"));
  EXPECT_THAT(choice.text(), HasSubstr("GID 2 (169.254.1.2): an IPv4 address; not 0: "));
}

/// mlx5: each address for both versions.
TEST(GidChoice, takes_roce_v2_of_two_versions) {
  const std::vector<GidEntry> table = {entry(0, "fe80::1", GidType::kRoceV1), entry(1, "fe80::1", GidType::kRoceV2),
                                       entry(2, "10.77.0.1", GidType::kRoceV1),
                                       entry(3, "10.77.0.1", GidType::kRoceV2)};
  const GidChoice choice = choose_gid(table);
  EXPECT_EQ(choice.chosen->index, 3);
  EXPECT_THAT(reason_against(choice, 2), HasSubstr("RoCE v1, and there is one of v2"));
  // A peer that speaks v2 does not understand v1, however good its address.
  EXPECT_EQ(choose_gid(std::vector{table[2], table[1]}).chosen->index, 1);
  const GidChoice v1 = choose_gid(std::vector{table[0], table[2]});
  EXPECT_EQ(v1.chosen->index, 2);
  EXPECT_THAT(v1.reason, HasSubstr("RoCE v1 alone"));
}

TEST(GidChoice, prefers_ipv6_that_routers_know_to_link_local) {
  EXPECT_EQ(choose_gid(std::vector{entry(0, "fe80::1"), entry(1, "fd77::1")}).chosen->index, 1);
  EXPECT_EQ(choose_gid(std::vector{entry(0, "fd77::1"), entry(1, "10.0.0.1")}).chosen->index, 1);
  EXPECT_EQ(choose_gid(std::vector{entry(0, "fe80::1")}).chosen->index, 0);
}

TEST(GidChoice, takes_the_first_of_equals) {
  const GidChoice choice = choose_gid(std::vector{entry(4, "10.0.0.1"), entry(7, "10.0.1.1")});
  EXPECT_EQ(choice.chosen->index, 4);
  EXPECT_EQ(reason_against(choice, 7), "10.0.1.1 is as good as 4 and comes later");
}

TEST(GidChoice, prefers_the_peers_subnet_to_all_else) {
  const Subnet peers{gid("fd77:0:0:5::"), 64};
  const std::vector<GidEntry> table = {entry(0, "10.0.0.1"), entry(1, "fd77:0:0:5::1")};
  EXPECT_EQ(choose_gid(table, peers).chosen->index, 1);
  EXPECT_THAT(reason_against(choose_gid(table, peers), 0), HasSubstr("not in the peer's subnet"));
  const GidChoice elsewhere = choose_gid(table, Subnet{gid("10.9.0.0"), 120});
  EXPECT_EQ(elsewhere.chosen->index, 0);
  EXPECT_THAT(elsewhere.reason, HasSubstr("none is in the peer's subnet 10.9.0.0"));
}

TEST(GidChoice, never_takes_what_cannot_work) {
  GidEntry down = entry(0, "10.0.0.1");
  down.interface = "en2";
  down.is_interface_up = false;
  const GidChoice choice = choose_gid(std::vector{down, entry(1, ""), entry(2, "0.0.0.0"), entry(3, "ff02::1")});
  EXPECT_FALSE(choice.chosen);
  EXPECT_THAT(reason_against(choice, 0), HasSubstr("en2, which is down"));
  EXPECT_THAT(reason_against(choice, 2), HasSubstr("no address of one machine"));
  EXPECT_THAT(choice.text(), HasSubstr("give the port's own interface an address"));
  down.is_interface_up = true;
  EXPECT_EQ(choose_gid(std::vector{down}).chosen->index, 0);
}

TEST(GidChoice, says_of_an_empty_table_what_to_do) {
  const GidChoice choice = choose_gid({});
  EXPECT_FALSE(choice.chosen);
  EXPECT_THAT(choice.text(), HasSubstr("out of the bridge"));
}

}  // namespace
}  // namespace ringbolt::bringup
