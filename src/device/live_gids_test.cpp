// GID tables as profiles lay them out, and as addresses come and go. The numbers of mapped addresses stand for them.

#include "device/live_gids.h"

#include <gtest/gtest.h>

#include <cstring>

#include "device/gid_table.h"
#include "device/netdev.h"

namespace ringbolt::device {
namespace {

using profile::GidLayout;

constexpr uint64_t kGuid = 0x0211223344556677ULL;

/// Mapped addresses by their numbers, 0 for a slot of zeros; -1: anything else.
std::vector<int> numbers_of(const std::vector<ibv_gid>& gids) {
  std::vector<int> numbers;
  for (const ibv_gid& gid : gids) {
    numbers.push_back(is_zero(gid) ? 0 : is_ipv4(gid) ? gid.raw[15] : -1);
  }
  return numbers;
}

std::vector<ibv_gid> gids_of(const std::vector<int>& numbers) {
  std::vector<ibv_gid> gids;
  for (const int number : numbers) {
    gids.push_back(number == 0 ? ibv_gid{} : mapped_gid(0x0a000000 + static_cast<uint32_t>(number)));
  }
  return gids;
}

using Numbers = std::vector<int>;

/// 1: link-local, 2: IPv4, 3: another one, 0: a slot of zeros.
Numbers arranged_kinds(GidLayout layout, bool has_ipv4, bool has_other) {
  const ibv_gid other = second_link_local_gid(kGuid);
  std::vector<ibv_gid> found{link_local_gid(kGuid)};
  if (has_ipv4) {
    found.push_back(mapped_gid(0x0a000001));
  }
  if (has_other) {
    found.push_back(other);
  }
  Numbers kinds;
  for (const ibv_gid& gid : arranged(layout, found)) {
    const bool is_other = std::memcmp(gid.raw, other.raw, sizeof gid.raw) == 0;
    kinds.push_back(is_zero(gid) ? 0 : is_ipv4(gid) ? 2 : is_other ? 3 : 1);
  }
  return kinds;
}

// profile::GidLayout says which lies where.
TEST(GidLayouts, put_each_address_where_the_machine_has_it) {
  EXPECT_EQ(arranged_kinds(GidLayout::plain, true, true), (Numbers{1, 2, 3}));
  EXPECT_EQ(arranged_kinds(GidLayout::mlx5, true, true), (Numbers{1, 1, 2, 2, 3, 3}));
  EXPECT_EQ(arranged_kinds(GidLayout::apple, true, true), (Numbers{1, 2, 3}));
  EXPECT_EQ(arranged_kinds(GidLayout::late, true, true), (Numbers{1, 0, 2, 3}));
  EXPECT_EQ(arranged_kinds(GidLayout::empty, true, true), Numbers{});
}

TEST(GidLayouts, leave_the_place_of_a_missing_ipv4_address_free_where_it_has_one) {
  EXPECT_EQ(arranged_kinds(GidLayout::plain, false, true), (Numbers{1, 3}));
  EXPECT_EQ(arranged_kinds(GidLayout::apple, false, true), (Numbers{1, 0, 3}));
  EXPECT_EQ(arranged_kinds(GidLayout::late, false, false), (Numbers{1, 0, 0}));
}

Numbers renewed_numbers(GidLayout layout, const Numbers& table, const Numbers& found, size_t capacity) {
  return numbers_of(renewed(layout, gids_of(table), gids_of(found), capacity));
}

TEST(RenewedGids, stay_where_they_are) {
  EXPECT_EQ(renewed_numbers(GidLayout::plain, {1, 2, 3}, {3, 1}, 8), (Numbers{1, 0, 3}));
  EXPECT_EQ(renewed_numbers(GidLayout::plain, {1, 2, 3}, {3, 2, 1}, 8), (Numbers{1, 2, 3}));
  EXPECT_EQ(renewed_numbers(GidLayout::plain, {1, 2}, {}, 8), (Numbers{0, 0}));
}

TEST(RenewedGids, new_ones_take_free_slots_in_their_order_and_then_further_ones) {
  EXPECT_EQ(renewed_numbers(GidLayout::plain, {1, 0, 3}, {1, 3, 4}, 8), (Numbers{1, 4, 3}));
  EXPECT_EQ(renewed_numbers(GidLayout::plain, {1, 2, 3}, {3, 4, 5, 6}, 8), (Numbers{4, 5, 3, 6}));
  EXPECT_EQ(renewed_numbers(GidLayout::plain, {1}, {1, 2, 3}, 8), (Numbers{1, 2, 3}));
}

TEST(RenewedGids, are_as_many_as_there_is_room_for) {
  EXPECT_EQ(renewed_numbers(GidLayout::plain, {1, 2}, {1, 2, 3, 4}, 3), (Numbers{1, 2, 3}));
  EXPECT_EQ(renewed_numbers(GidLayout::plain, {1, 2}, {2, 3, 4}, 2), (Numbers{3, 2}));
}

TEST(RenewedGids, have_a_slot_for_each_version_of_roce) {
  EXPECT_EQ(renewed_numbers(GidLayout::mlx5, {1, 1}, {1, 2}, 8), (Numbers{1, 1, 2, 2}));
  EXPECT_EQ(renewed_numbers(GidLayout::mlx5, {1, 1, 2, 2}, {2, 3}, 8), (Numbers{3, 3, 2, 2}));
  // A slot that is free for one version alone is none for the other.
  EXPECT_EQ(renewed_numbers(GidLayout::mlx5, {0, 1, 1, 0}, {1, 2}, 8), (Numbers{2, 1, 1, 2}));
  EXPECT_EQ(renewed_numbers(GidLayout::mlx5, {1, 1}, {1, 2}, 3), (Numbers{1, 1}));
}

TEST(RenewedGids, of_an_empty_table_are_none) {
  EXPECT_EQ(renewed_numbers(GidLayout::empty, {}, {1, 2}, 8), Numbers{});
}

LiveGids of(const Numbers& known, const Numbers& shown) { return LiveGids({gids_of(known), gids_of(shown)}); }

TEST(LiveGidsTest, hide_every_slot_of_an_address_and_the_address) {
  LiveGids live = of({1, 2}, {1, 1, 2, 2});
  live.hide(2);
  EXPECT_EQ(numbers_of(live.now()->shown), (Numbers{1, 1, 0, 0}));
  EXPECT_EQ(numbers_of(live.now()->known), (Numbers{1, 0}));
  live.hide(0);  // another one instead
  EXPECT_EQ(numbers_of(live.now()->shown), (Numbers{0, 0, 2, 2}));
  EXPECT_EQ(live.generation(), 2U);
}

TEST(LiveGidsTest, nothing_is_hidden_beyond_the_table_or_in_an_empty_slot) {
  LiveGids live = of({1, 2}, {1, 0, 2});
  live.hide(3);
  live.hide(1);
  EXPECT_EQ(numbers_of(live.now()->shown), (Numbers{1, 0, 2}));
  EXPECT_EQ(live.generation(), 0U);
}

TEST(LiveGidsTest, hidden_slot_stays_hidden_whatever_comes_into_it) {
  LiveGids live = of({1, 2}, {1, 2});
  live.hide(1);
  live.find(GidLayout::plain, gids_of({1, 3}), 8);
  EXPECT_EQ(numbers_of(live.now()->shown), (Numbers{1, 0}));
  EXPECT_EQ(numbers_of(live.now()->known), (Numbers{1, 0}));
  live.hide(std::nullopt);
  EXPECT_EQ(numbers_of(live.now()->shown), (Numbers{1, 3}));
  EXPECT_EQ(numbers_of(live.now()->known), (Numbers{1, 3}));
}

TEST(LiveGidsTest, what_was_found_before_is_no_news) {
  LiveGids live = of({1, 2}, {1, 2});
  const auto before = live.now();
  live.find(GidLayout::plain, gids_of({1, 2}), 8);
  EXPECT_EQ(live.generation(), 0U);
  EXPECT_EQ(live.now(), before);
  live.find(GidLayout::plain, gids_of({1}), 8);
  EXPECT_EQ(live.generation(), 1U);
  EXPECT_EQ(numbers_of(before->shown), (Numbers{1, 2}));  // who holds a table holds it as it was
}

}  // namespace
}  // namespace ringbolt::device
