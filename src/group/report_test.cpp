#include "group/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/loop_fabric_test_support.h"

namespace ringbolt::group {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// What rank 0 of a line of three has, over the device.
class ReportTest : public testing::Test {
 protected:
  ReportTest() : fabric_(3, {{0, 1}, {1, 2}}) {
    // Not owned: the fabric's.
    made_.station = std::shared_ptr<engine::Station>(std::shared_ptr<void>(), fabric_.stations[0].get());
  }
  std::string text() const { return report({0, 2, 0, 3}, made_); }

  engine::test::LoopFabric fabric_;
  mesh::BroughtUp made_;
};

TEST(Report, of_a_mesh_of_one_rank_says_no_more) { EXPECT_EQ(report({0, 1, 0, 1}, {}), "rank 0 of 1\n"); }

TEST(Report, describes_cables_and_what_was_measured_on_them) {
  mesh::BroughtUp made;
  made.cables = {{0, 1, "rdma_a", "rdma_b", 40'000, "link-local addresses"}, {1, 2, "rdma_c", "rdma_d", 0, "trying"}};
  made.links = {{0, 1, 2500, 12'500'000}, {1, 2, 9000, 0}};
  made.unmatched = {"rdma_e: the port is down"};
  const std::string text = report({1, 2, 2, 3}, made);
  EXPECT_THAT(text, StartsWith("rank 1 of 2\n"));  // of its group, not of the mesh
  EXPECT_THAT(text, HasSubstr("  " + made.cables[0].text() + ": 40.0 Gb/s, found by link-local addresses\n"));
  EXPECT_THAT(text, HasSubstr("  " + made.cables[1].text() + ": rate unknown, found by trying\n"));
  // 12.5 million bytes a millisecond are 100 Gb/s.
  EXPECT_THAT(text, HasSubstr("  ranks 0-1: 2.5 us and 100.0 Gb/s measured\n"));
  EXPECT_THAT(text, HasSubstr("  ranks 1-2: too slow to be measured in time\n"));
  EXPECT_THAT(text, HasSubstr("  no cable: rdma_e: the port is down\n"));
}

TEST_F(ReportTest, names_the_way_to_each_other_rank_of_the_mesh) {
  EXPECT_THAT(text(), HasSubstr("  rank 1 of the world: direct\n  rank 2 of the world: through 1\n"));
  EXPECT_THAT(text(), Not(HasSubstr("rank 0 of the world")));
}

TEST_F(ReportTest, says_where_no_way_leads_any_more) {
  fabric_.engine(0).set_cable_up(1, false);
  EXPECT_THAT(text(), HasSubstr("  rank 1 of the world: direct\n  rank 2 of the world: no way\n"));
}

TEST_F(ReportTest, counts_what_the_engine_has_sent) {
  EXPECT_THAT(text(), HasSubstr("chunks sent 0, received 0,"));
  ASSERT_TRUE(fabric_.send(0, 1, 0, 100));
  EXPECT_THAT(text(), HasSubstr("chunks sent 1, received 0,"));
}

}  // namespace
}  // namespace ringbolt::group
