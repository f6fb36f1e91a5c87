#include "profile/gid_layout.h"

#include <gtest/gtest.h>

namespace ringbolt::profile {
namespace {

using Slots = std::vector<std::optional<size_t>>;
const std::vector<GidKind> kUsual{GidKind::link_local, GidKind::ipv4, GidKind::other};

TEST(GidLayout, lays_out_the_usual_three) {
  EXPECT_EQ(gid_slots(GidLayout::plain, kUsual), (Slots{0, 1, 2}));
  EXPECT_EQ(gid_slots(GidLayout::apple, kUsual), (Slots{0, 1, 2}));
  EXPECT_EQ(gid_slots(GidLayout::late, kUsual), (Slots{0, std::nullopt, 1, 2}));
  EXPECT_EQ(gid_slots(GidLayout::mlx5, kUsual), (Slots{0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(gid_slots(GidLayout::empty, kUsual), Slots{});
}

TEST(GidLayout, leaves_slots_of_addresses_that_are_missing_empty) {
  const std::vector<GidKind> no_ipv4{GidKind::link_local, GidKind::other};
  EXPECT_EQ(gid_slots(GidLayout::apple, no_ipv4), (Slots{0, std::nullopt, 1}));
  EXPECT_EQ(gid_slots(GidLayout::late, {GidKind::ipv4}), (Slots{std::nullopt, std::nullopt, 0}));
}

TEST(GidLayout, tells_the_versions_of_mlx5_apart) {
  EXPECT_TRUE(is_version_1(GidLayout::mlx5, 2));
  EXPECT_FALSE(is_version_1(GidLayout::mlx5, 3));
  EXPECT_FALSE(is_version_1(GidLayout::plain, 2));
}

TEST(Look, shows_guids_that_rise_in_the_first_byte) {
  Look look;
  EXPECT_EQ(shown_guid(look, 0x1122334455667788, 1), 0x1122334455667788U);
  look.has_rising_guids = true;
  EXPECT_EQ(shown_guid(look, 0x1122334455667788, 0), 0xe022334455667705U);
  EXPECT_EQ(shown_guid(look, 0x1122334455667789, 1), 0xe122334455667705U);
}

TEST(Look, has_no_lid_of_zero_where_there_are_some) {
  Look look;
  EXPECT_EQ(shown_lid(look, 77), 0);
  look.has_lid = true;
  for (uint64_t guid = 0; guid < 100'000; ++guid) {
    ASSERT_NE(shown_lid(look, guid), 0);
    ASSERT_LT(shown_lid(look, guid), 0xc000);  // above are multicast LIDs
  }
}

}  // namespace
}  // namespace ringbolt::profile
