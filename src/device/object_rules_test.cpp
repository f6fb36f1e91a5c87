// What profiles refuse of objects (docs/profiles.md).

#include "device/object_rules.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "device/device_test_support.h"
#include "device/first_seen.h"
#include "device/gid_table.h"
#include "device/ledger.h"
#include "device/live_gids.h"
#include "device/region_ages.h"

namespace ringbolt::device {
namespace {

class ObjectRulesTest : public testing::Test {
 protected:
  void begin(const std::string& like) {
    device_.reset();
    device_ = std::make_unique<DeviceUnderTest>(like);
  }
  const Port& port() const { return device_->port(); }
  int check(ibv_qp_type type, const ibv_qp_cap& cap) {
    wanted_ = {};
    wanted_.qp_type = type;
    wanted_.cap = cap;
    return check_qp(port(), wanted_);
  }
  int check_memory(uint64_t address, uint32_t access = IBV_ACCESS_LOCAL_WRITE) {
    return check_region(port(), address, 64, address, access);
  }
  std::unique_ptr<DeviceUnderTest> device_;
  ibv_qp_init_attr wanted_{};
};

constexpr ibv_qp_cap kSmallest{1, 1, 1, 1, 0};
constexpr uint64_t kAligned = 16384 * 5;

TEST_F(ObjectRulesTest, plain_device_refuses_nothing) {
  begin("");
  EXPECT_EQ(check_pd(port()), 0);
  EXPECT_EQ(check_cq(port(), 1U << 20U), 0);
  EXPECT_EQ(check_channel(port()), 0);
  EXPECT_EQ(check_srq(port()), 0);
  EXPECT_EQ(check_address_handle(port()), 0);
  EXPECT_EQ(check_window(port()), 0);
  EXPECT_EQ(check_memory(kAligned + 1), 0);
  for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD}) {
    EXPECT_EQ(check(type, {16384, 16384, 16, 16, 256}), 0);
    EXPECT_EQ(wanted_.cap.max_send_wr, 16384U);
  }
}

TEST_F(ObjectRulesTest, mac_has_none_of_the_finer_objects) {
  begin("tn3205");
  EXPECT_EQ(check_channel(port()), EOPNOTSUPP);
  EXPECT_EQ(check_srq(port()), EOPNOTSUPP);
  EXPECT_EQ(check_address_handle(port()), EOPNOTSUPP);
  EXPECT_EQ(check_window(port()), EOPNOTSUPP);
  begin("tn3205,channels=on");
  EXPECT_EQ(check_channel(port()), 0);
}

TEST_F(ObjectRulesTest, mac_has_queue_pairs_of_type_uc) {
  begin("tn3205");
  EXPECT_EQ(check(IBV_QPT_RC, kSmallest), EOPNOTSUPP);
  EXPECT_EQ(check(IBV_QPT_UD, kSmallest), EOPNOTSUPP);
  EXPECT_EQ(check(IBV_QPT_UC, kSmallest), 0);
  begin("tn3205,type-at=modify");
  EXPECT_EQ(check(IBV_QPT_RC, kSmallest), 0);
}

TEST_F(ObjectRulesTest, mac_grants_depth_in_frames) {
  begin("tn3205");
  ASSERT_EQ(check(IBV_QPT_UC, kSmallest), 0);
  EXPECT_EQ(wanted_.cap.max_send_wr, 1023U);
  ASSERT_EQ(check(IBV_QPT_UC, {4095, 2000, 1, 1, 0}), 0);
  EXPECT_EQ(wanted_.cap.max_send_wr, 4095U);
  EXPECT_GE(wanted_.cap.max_recv_wr, 2000U);
  EXPECT_EQ(check(IBV_QPT_UC, {4096, 1, 1, 1, 0}), EINVAL);
  EXPECT_EQ(check(IBV_QPT_UC, {1, 4096, 1, 1, 0}), EINVAL);
}

TEST_F(ObjectRulesTest, mac_takes_one_piece_and_no_inline_data) {
  begin("tn3205");
  EXPECT_EQ(check(IBV_QPT_UC, {1, 1, 2, 1, 0}), EINVAL);
  EXPECT_EQ(check(IBV_QPT_UC, {1, 1, 1, 2, 0}), EINVAL);
  EXPECT_EQ(check(IBV_QPT_UC, {1, 1, 1, 1, 1}), EINVAL);
  begin("tn3205,multi-sge=accept");
  EXPECT_EQ(check(IBV_QPT_UC, {1, 1, 2, 2, 0}), 0);
}

TEST_F(ObjectRulesTest, mac_has_completion_queues_of_4096_entries) {
  begin("tn3205");
  EXPECT_EQ(check_cq(port(), 4096), 0);
  EXPECT_EQ(check_cq(port(), 4097), EINVAL);
}

TEST_F(ObjectRulesTest, mac_wants_regions_to_begin_on_16_kib_and_to_be_named_by_their_own_addresses) {
  begin("tn3205");
  EXPECT_EQ(check_memory(kAligned), 0);
  EXPECT_EQ(check_memory(kAligned + 4096), EINVAL);
  EXPECT_EQ(check_region(port(), kAligned, 64, 0, 0), EOPNOTSUPP);
  EXPECT_EQ(check_memory(kAligned, IBV_ACCESS_ZERO_BASED), EOPNOTSUPP);
  begin("tn3205,align=any");
  EXPECT_EQ(check_memory(kAligned + 4096), 0);
}

TEST_F(ObjectRulesTest, regions_may_have_to_be_for_others_and_off_the_heap) {
  begin("roce,mr-access=remote");
  EXPECT_EQ(check_memory(kAligned), EINVAL);
  EXPECT_EQ(check_memory(kAligned, IBV_ACCESS_REMOTE_READ), 0);
  begin("roce,mr-memory=mapped");
  int on_the_stack = 0;
  EXPECT_EQ(check_memory(reinterpret_cast<uint64_t>(&on_the_stack)), EINVAL);
  EXPECT_EQ(check_memory(kAligned), 0);
}

TEST_F(ObjectRulesTest, usb4_has_its_own_limits) {
  begin("usb4-linux");
  EXPECT_EQ(check(IBV_QPT_UD, kSmallest), EOPNOTSUPP);
  EXPECT_EQ(check(IBV_QPT_RC, {1024, 1024, 4, 4, 0}), 0);
  EXPECT_EQ(wanted_.cap.max_send_wr, 1024U);
  EXPECT_EQ(check(IBV_QPT_RC, {1025, 1, 1, 1, 0}), EINVAL);
  EXPECT_EQ(check(IBV_QPT_RC, {1, 1, 5, 1, 0}), EINVAL);
  EXPECT_EQ(check_channel(port()), 0);
}

// --- Objects that are counted.

TEST_F(ObjectRulesTest, as_many_queue_pairs_as_the_profile_allows_and_each_comes_back) {
  begin("tn3205");
  std::vector<Claim> claims;
  for (int i = 0; i < 10; ++i) {
    auto claim = port().claim(profile::Counted::qp);
    ASSERT_TRUE(claim) << i;
    claims.push_back(std::move(*claim));
  }
  const auto refused = port().claim(profile::Counted::qp);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().value, EBUSY);
  claims.pop_back();
  EXPECT_TRUE(port().claim(profile::Counted::qp));
  EXPECT_TRUE(port().claim(profile::Counted::pd));  // each kind has a count of its own
}

TEST_F(ObjectRulesTest, device_without_limits_counts_all_the_same) {
  begin("");
  const auto count = [this] { return port().live->counts[static_cast<size_t>(profile::Counted::mr)].load(); };
  {
    const auto one = port().claim(profile::Counted::mr);
    const auto two = port().claim(profile::Counted::mr);
    EXPECT_EQ(count(), 2U);
  }
  EXPECT_EQ(count(), 0U);
}

// --- Small parts.

TEST(RegionAgesTest, know_what_was_made_after_a_count) {
  RegionAges ages;
  ages.add(10);
  const uint64_t then = ages.count();
  ages.add(20);
  EXPECT_FALSE(ages.is_after(10, then));
  EXPECT_TRUE(ages.is_after(20, then));
  EXPECT_FALSE(ages.is_after(20, ages.count()));
  ages.remove(20);
  EXPECT_FALSE(ages.is_after(20, then));
  ages.add(10);  // the key was given out anew
  EXPECT_TRUE(ages.is_after(10, then));
}

TEST(FirstSeenTest, keeps_the_first_and_tells_it_once) {
  FirstSeen seen;
  EXPECT_FALSE(seen.take().has_value());
  EXPECT_TRUE(seen.note(0x123456, 99));
  EXPECT_FALSE(seen.note(0x654321, 11));
  const auto told = seen.take();
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->qpn, 0x123456U);
  EXPECT_EQ(told->bytes, 99U);
  EXPECT_FALSE(seen.take().has_value());
  EXPECT_FALSE(seen.note(1, 2));  // one was told: no more of its kind
}

// RFC 4291, 2.5.1 and 2.5.5.2.
TEST(GidTableTest, makes_link_local_and_mapped_addresses) {
  const ibv_gid local = link_local_gid(0x0011223344556677ULL);
  EXPECT_EQ(local.raw[0], 0xfe);
  EXPECT_EQ(local.raw[1], 0x80);
  EXPECT_EQ(local.raw[8], 0x02);  // the universal bit turned
  EXPECT_EQ(local.raw[15], 0x77);
  const ibv_gid mapped = mapped_gid(0xc0000207);
  EXPECT_EQ(mapped.raw[9], 0);
  EXPECT_EQ(mapped.raw[10], 0xff);
  EXPECT_EQ(mapped.raw[12], 192);
  EXPECT_EQ(mapped.raw[15], 7);
  EXPECT_FALSE(is_zero(mapped));
  EXPECT_TRUE(is_zero(ibv_gid{}));
}

TEST(GidTableTest, keeps_the_second_link_local_address_apart_from_the_first) {
  const auto gids = memory_gids(0x0011223344556677ULL, 1);
  ASSERT_EQ(gids.size(), 3U);
  EXPECT_NE(std::memcmp(gids[0].raw, gids[2].raw, sizeof gids[0].raw), 0);
  EXPECT_EQ(gids[2].raw[0], 0xfe);
}

TEST(LiveGidsTest, address_that_is_away_leaves_a_slot_of_zeros_and_comes_back) {
  const auto gids = memory_gids(0x0011223344556677ULL, 0x0a000001);
  LiveGids live({gids, gids});
  const uint32_t before = live.generation();
  live.hide(1);
  EXPECT_NE(live.generation(), before);
  EXPECT_TRUE(is_zero(live.now()->shown[1]));
  EXPECT_FALSE(is_zero(live.now()->shown[0]));
  const uint32_t hidden = live.generation();
  live.hide(1);
  EXPECT_EQ(live.generation(), hidden);  // no news
  live.hide(std::nullopt);
  EXPECT_FALSE(is_zero(live.now()->shown[1]));
}

TEST(LiveGidsTest, new_address_takes_the_first_free_slot) {
  const std::vector<ibv_gid> first{mapped_gid(1), mapped_gid(2)};
  LiveGids live({first, first});
  live.find(profile::GidLayout::plain, {mapped_gid(2)}, 4);
  EXPECT_TRUE(is_zero(live.now()->shown[0]));
  live.find(profile::GidLayout::plain, {mapped_gid(2), mapped_gid(3)}, 4);
  EXPECT_EQ(live.now()->shown[0].raw[15], 3);
  EXPECT_EQ(live.now()->shown[1].raw[15], 2);  // it stays where it is
}

}  // namespace
}  // namespace ringbolt::device
