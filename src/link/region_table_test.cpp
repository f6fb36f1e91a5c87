#include "link/region_table.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <set>

namespace ringbolt::link {
namespace {

Region region_at(uint64_t address, uint64_t length) {
  Region region;
  region.first = region.host_first = address;
  region.length = length;
  region.access = 7;
  region.pd_key = 3;
  return region;
}

TEST(Region, holds_what_lies_inside_and_survives_sums_that_wrap) {
  const Region region = region_at(1000, 100);
  EXPECT_TRUE(region.holds(1000, 100));
  EXPECT_TRUE(region.holds(1100, 0));
  EXPECT_FALSE(region.holds(1000, 101));
  EXPECT_FALSE(region.holds(999, 1));
  EXPECT_FALSE(region.holds(1099, 2));
  EXPECT_FALSE(region.holds(1050, UINT64_MAX));
  EXPECT_FALSE(region.holds(UINT64_MAX, 1));
}

TEST(RegionTable, finds_what_was_published_until_it_is_hidden) {
  RegionTable table;
  ASSERT_TRUE(table.create());
  const uint32_t key = table.add(region_at(4096, 64)).value();
  Region found;
  ASSERT_TRUE(table.find(key, found));
  EXPECT_EQ(found.first, 4096U);
  EXPECT_EQ(found.length, 64U);
  EXPECT_EQ(found.pd_key, 3U);
  table.hide(key);
  EXPECT_FALSE(table.find(key, found));
}

TEST(RegionTable, knows_whether_a_region_of_the_domain_holds_some_bytes_whole) {
  RegionTable table;
  ASSERT_TRUE(table.create());
  EXPECT_FALSE(table.is_held(3, 4096, 1, 1));
  table.add(region_at(65536, 64)).value();
  const uint32_t key = table.add(region_at(4096, 64)).value();
  EXPECT_TRUE(table.is_held(3, 4096, 64, 1));
  EXPECT_TRUE(table.is_held(3, 4159, 1, 7));
  EXPECT_FALSE(table.is_held(3, 4095, 2, 1));
  EXPECT_FALSE(table.is_held(3, 4159, 2, 1));
  EXPECT_FALSE(table.is_held(3, 4096, UINT64_MAX, 1));
  EXPECT_FALSE(table.is_held(4, 4096, 1, 1)) << "another domain";
  EXPECT_FALSE(table.is_held(3, 4096, 1, 8)) << "it does not allow that";
  table.hide(key);
  EXPECT_FALSE(table.is_held(3, 4096, 1, 1));
}

TEST(RegionTable, keys_near_a_valid_one_open_nothing) {
  RegionTable table;
  ASSERT_TRUE(table.create());
  const uint32_t key = table.add(region_at(4096, 64)).value();
  Region found;
  for (uint32_t bit = 0; bit < 32; ++bit) {
    EXPECT_FALSE(table.find(key ^ (1U << bit), found)) << "bit " << bit;
  }
  EXPECT_FALSE(table.find(0, found));
}

TEST(RegionTable, a_freed_key_is_not_given_out_again_soon_whatever_its_low_byte) {
  RegionTable table;
  ASSERT_TRUE(table.create());
  std::set<uint32_t> keys;
  Region found;
  for (int i = 0; i < 3000; ++i) {
    const uint32_t key = table.add(region_at(4096, 64)).value();
    EXPECT_TRUE(keys.insert(key & ~0xffU).second);
    table.hide(key);
    table.release(key);
    EXPECT_FALSE(table.find(key, found));
  }
}

TEST(RegionTable, a_window_may_change_the_low_byte_of_its_key) {
  RegionTable table;
  ASSERT_TRUE(table.create());
  const uint32_t key = table.add(region_at(4096, 64)).value();
  const uint32_t next = (key & ~0xffU) | ((key + 1) & 0xffU);
  table.hide(key);
  table.publish(next, region_at(8192, 8));
  Region found;
  EXPECT_FALSE(table.find(key, found));
  ASSERT_TRUE(table.find(next, found));
  EXPECT_EQ(found.first, 8192U);
}

TEST(RegionTable, a_peer_sees_it_and_cannot_write_it) {
  RegionTable table;
  ASSERT_TRUE(table.create());
  const uint32_t key = table.add(region_at(4096, 64)).value();
  const std::string path = "/proc/self/fd/" + std::to_string(table.descriptor());
  const base::UniqueFd read_only(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const auto segment = SharedSegment::map(read_only, kRegionTableBytes, false);
  ASSERT_TRUE(segment);
  const auto view = RegionTableView::open(*segment);
  ASSERT_TRUE(view);
  Region found;
  EXPECT_TRUE(view->find(key, found));
  EXPECT_FALSE(SharedSegment::map(read_only, kRegionTableBytes, true));
}

TEST(SharedSegment, is_not_taken_from_a_peer_who_could_shrink_it) {
  const base::UniqueFd unsealed(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(unsealed.get(), 4096), 0);
  EXPECT_EQ(SharedSegment::map(unsealed, 4096, true).error().value, EINVAL);
  const auto made = SharedSegment::create("test", 8192).value();
  const base::UniqueFd copy(dup(made.descriptor()));
  EXPECT_EQ(SharedSegment::map(copy, 4096, true).error().value, EINVAL) << "the length must be the agreed one";
  EXPECT_TRUE(SharedSegment::map(copy, 8192, true));
  EXPECT_NE(ftruncate(copy.get(), 0), 0);
}

TEST(RegionTable, refuses_a_segment_that_is_none) {
  const auto segment = SharedSegment::create("test", kRegionTableBytes).value();
  EXPECT_EQ(RegionTableView::open(segment).error().value, EINVAL);
}

}  // namespace
}  // namespace ringbolt::link
