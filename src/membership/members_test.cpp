#include "membership/members.h"

#include <gtest/gtest.h>

namespace ringbolt::membership {
namespace {

Announcement announcement_of(MemberId member, uint32_t version, std::vector<MemberId> adjacent = {}) {
  Announcement made;
  made.contact.member = member;
  made.version = version;
  made.adjacent = std::move(adjacent);
  return made;
}

TEST(Members, keep_the_newest_announcement) {
  Members members(1, 3);
  EXPECT_EQ(members.hear(announcement_of(2, 5)), Members::News::first);
  EXPECT_EQ(members.hear(announcement_of(2, 5)), Members::News::none) << "the same";
  EXPECT_EQ(members.hear(announcement_of(2, 4)), Members::News::none) << "an older one";
  EXPECT_EQ(members.hear(announcement_of(2, 6)), Members::News::changed);
  EXPECT_EQ(members.find(2)->version, 6U);
  EXPECT_EQ(members.hear(announcement_of(1, 9)), Members::News::none) << "of oneself";
}

TEST(Members, versions_wrap) {
  Members members(1, 3);
  members.hear(announcement_of(2, UINT32_MAX));
  EXPECT_EQ(members.hear(announcement_of(2, 0)), Members::News::changed);
}

TEST(Members, who_is_gone_does_not_come_back) {
  Members members(1, 3);
  members.hear(announcement_of(2, 1));
  EXPECT_TRUE(members.end(2));
  EXPECT_FALSE(members.end(2)) << "no news";
  EXPECT_EQ(members.hear(announcement_of(2, 9)), Members::News::none);
  EXPECT_EQ(members.find(2), nullptr);
  EXPECT_FALSE(members.end(1)) << "oneself";
}

TEST(Members, of_very_many_that_are_gone_the_last_ones_are_remembered) {
  Members members(1, 3);
  for (MemberId member = 2; member < Members::kMostGone + 3; ++member) {
    EXPECT_TRUE(members.end(member));
  }
  EXPECT_FALSE(members.is_gone(2));
  EXPECT_TRUE(members.is_gone(3));
  EXPECT_TRUE(members.is_gone(Members::kMostGone + 2));
}

TEST(Members, silence_is_counted_in_ticks) {
  Members members(1, 3);
  members.hear(announcement_of(2, 1));
  members.hear(announcement_of(3, 1));
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(members.tick().empty());
  }
  EXPECT_TRUE(members.hear_beat(3, 1));
  EXPECT_EQ(members.tick(), std::vector<MemberId>{2});
  members.touch(2);
  EXPECT_TRUE(members.is_heard(2, 1));
  EXPECT_TRUE(members.is_heard(3, 2));
  EXPECT_FALSE(members.is_heard(3, 1));
}

TEST(Members, a_beat_is_news_once) {
  Members members(1, 3);
  EXPECT_FALSE(members.hear_beat(2, 1)) << "of a stranger";
  members.hear(announcement_of(2, 1));
  EXPECT_TRUE(members.hear_beat(2, 1));
  EXPECT_FALSE(members.hear_beat(2, 1));
  EXPECT_FALSE(members.hear_beat(2, 0));
  EXPECT_TRUE(members.hear_beat(2, 7));
}

TEST(Members, the_way_leads_over_who_hears_whom) {
  Members members(1, 3);  // 1 - 2 - 3 - 4, and 1 - 5 - 4
  members.hear(announcement_of(2, 1, {1, 3}));
  members.hear(announcement_of(3, 1, {2, 4}));
  members.hear(announcement_of(5, 1, {1, 4}));
  members.hear(announcement_of(4, 1, {3, 5}));
  const std::set<MemberId> neighbours = {2, 5};
  EXPECT_EQ(members.next_hop(2, neighbours), 2U);
  EXPECT_EQ(members.next_hop(3, neighbours), 2U);
  EXPECT_EQ(members.next_hop(4, neighbours), 5U) << "the shorter way";
  EXPECT_EQ(members.next_hop(4, {2}), 2U);
  EXPECT_EQ(members.next_hop(9, neighbours), std::nullopt);
  members.end(3);
  EXPECT_EQ(members.next_hop(4, {2}), std::nullopt) << "over one that is gone";
}

TEST(Announcement, comes_back_as_it_was) {
  Announcement made = announcement_of(7, 3, {1, 2});
  made.contact.machine = 0x1122334455667788;
  made.contact.port = 4711;
  made.contact.addresses = {{0xfd, 0x77}, {0xfe}};
  made.node = 99;
  made.name = "spark-2 (pid 4711)";
  made.details = {std::byte{1}, std::byte{2}};
  const std::vector<std::byte> bytes = emit(made);
  const auto parsed = parse_announcement(bytes);
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(*parsed, made);
  const size_t n_before_details = bytes.size() - made.details.size();
  for (size_t length = 0; length < n_before_details; ++length) {
    EXPECT_FALSE(parse_announcement(std::span(bytes).first(length)).has_value()) << length;
  }
}

TEST(Announcement, of_nobody_is_refused) { EXPECT_FALSE(parse_announcement(emit(announcement_of(0, 1))).has_value()); }

}  // namespace
}  // namespace ringbolt::membership
