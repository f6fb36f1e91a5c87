#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "agent/attendance.h"
#include "fabric/relaying.h"

namespace ringbolt::tools::agent {
namespace {

using Nodes = std::vector<uint32_t>;

constexpr uint32_t kMostOfLine = fabric::kMostHopsOfGroup + 1;

fabric::Graph line_of(uint32_t n_nodes) {
  fabric::Graph line{n_nodes, {}};
  for (uint32_t node = 1; node < n_nodes; ++node) {
    fabric::join(line, node - 1, node);
  }
  return line;
}

Nodes first(uint32_t n_nodes) {
  Nodes nodes;
  for (uint32_t node = 0; node < n_nodes; ++node) {
    nodes.push_back(node);
  }
  return nodes;
}

TEST(Attendance, joins_those_who_come_by_way_of_those_who_come) {
  fabric::Graph cabling = line_of(5);
  const auto joined = [&](const std::vector<bool>& comes, uint32_t node) { return joined_with(cabling, comes, node); };
  EXPECT_EQ(joined({true, true, true, true, true}, 3), first(5));
  EXPECT_EQ(joined({true, true, false, true, true}, 1), (Nodes{0, 1}));
  EXPECT_EQ(joined({true, true, false, true, true}, 4), (Nodes{3, 4}));
  EXPECT_EQ(joined({true, true, false, true, true}, 2), first(5));  // who asks comes
  EXPECT_EQ(joined({false, false, false, false, false}, 0), Nodes{0});
  fabric::join(cabling, 0, 4);
  EXPECT_EQ(joined({true, true, false, true, true}, 1), (Nodes{0, 1, 3, 4}));
}

TEST(Attendance, nodes_that_no_cable_joins_are_no_group) {
  EXPECT_FALSE(can_be_group(line_of(3), {0, 2}));
  EXPECT_TRUE(can_be_group(line_of(3), {1, 2}));
  EXPECT_TRUE(can_be_group(line_of(3), {0, 1, 2}));
  EXPECT_TRUE(can_be_group(line_of(3), {2}));
}

TEST(Attendance, nodes_that_are_too_far_apart_are_no_group) {
  EXPECT_TRUE(can_be_group(line_of(kMostOfLine), first(kMostOfLine)));
  fabric::Graph ring = line_of(kMostOfLine + 1);
  EXPECT_FALSE(can_be_group(ring, first(kMostOfLine + 1)));  // with a cable that is cut
  fabric::join(ring, 0, kMostOfLine);
  EXPECT_TRUE(can_be_group(ring, first(kMostOfLine + 1)));
}

using Nodes = std::vector<uint32_t>;

class MeetingsFile : public testing::Test {
 protected:
  MeetingsFile() { folder_ = ::mkdtemp(pattern_.data()); }
  ~MeetingsFile() override { std::filesystem::remove_all(folder_); }
  std::string path() const { return folder_ + "/meetings"; }
  Meetings meetings() const { return Meetings(path()); }

 private:
  std::string pattern_ = "/tmp/rbmeet-XXXXXX";
  std::string folder_;
};

TEST_F(MeetingsFile, says_nothing_at_first) {
  EXPECT_EQ(meetings().last(), 0U);
  EXPECT_FALSE(meetings().of(0));
}

TEST_F(MeetingsFile, has_the_last_meeting_of_each_node) {
  const Meeting all = meetings().call(0, {0, 1, 2, 3}, 0);
  EXPECT_EQ(all.number, 1U);
  EXPECT_NE(all.port, 0);
  EXPECT_EQ(meetings().of(3), all);
  const Meeting some = meetings().call(1, {0, 1, 2}, all.number);
  EXPECT_EQ(some.number, 2U);
  EXPECT_EQ(meetings().of(0), some);
  EXPECT_FALSE(meetings().of(3));
  const Meeting alone = meetings().call(3, {3}, all.number);
  EXPECT_EQ(alone.number, 3U);
  EXPECT_EQ(meetings().of(2), some);
  EXPECT_EQ(meetings().of(3), alone);
  EXPECT_EQ(meetings().last(), 3U);
}

TEST_F(MeetingsFile, who_is_late_takes_part_in_what_another_one_has_called) {
  const Meeting first = meetings().call(2, {0, 1, 2}, 0);
  EXPECT_EQ(meetings().call(1, {0, 1}, 0), first);
  EXPECT_EQ(meetings().call(1, {0, 1}, first.number).nodes, (Nodes{0, 1}));
}

TEST_F(MeetingsFile, that_is_damaged_is_begun_anew_with_numbers_that_nobody_knows) {
  for (const char* text : {"", "x", "ringbolt-meetings 1\n", "ringbolt-meetings 1\nlast 9\nmeeting 9 70000 1\n",
                           "ringbolt-meetings 1\nlast 9\nmeeting 9 7000 1", "ringbolt-meetings 2\nlast 9\n"}) {
    EXPECT_FALSE(parse_meetings(text)) << text;
    std::ofstream(path()) << text;
    EXPECT_FALSE(meetings().of(1));
    EXPECT_EQ(meetings().call(1, {0, 1}, 7).number, 8U);
  }
}

TEST(MeetingsText, is_read_as_it_was_written) {
  const MeetingsText text{12, {{11, 4000, {0, 2, 63}}, {12, 65535, {1}}}};
  EXPECT_EQ(emit(text), "ringbolt-meetings 1\nlast 12\nmeeting 11 4000 0 2 63\nmeeting 12 65535 1\n");
  EXPECT_EQ(parse_meetings(emit(text)), text);
}

}  // namespace

}  // namespace ringbolt::tools::agent
