#include "standing.h"

#include <gtest/gtest.h>

#include "cluster/topology.h"

namespace ringbolt::tools {
namespace {

using State = Standing::State;

class Standings : public testing::Test {
 protected:
  /// A program on node `node` of a ring of four, whose port rdma_en2 leads to the next node, rdma_en3 to the one
  /// before.
  static Program program(uint32_t node, std::vector<PortUse> ports) {
    return {static_cast<pid_t>(100 + node), "job", "n" + std::to_string(node), std::move(ports)};
  }

  std::vector<Standing> judge(const std::vector<Program>& before, const std::vector<Program>& now) {
    return standings(model_, is_up_, before, now, deaths_);
  }

  cluster::Cluster model_ = *cluster::parse_topology("ring:4");
  std::vector<bool> is_up_ = std::vector<bool>(4, true);
  std::vector<Death> deaths_;
};

TEST_F(Standings, who_moves_is_active_whatever_is_cut) {
  is_up_[0] = false;
  const auto all = judge({program(0, {{"rdma_en2", 7}})}, {program(0, {{"rdma_en2", 8}})});
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].state, State::kActive);
  EXPECT_EQ(all[0].cause, "");
}

TEST_F(Standings, who_has_just_begun_is_active) {
  is_up_[0] = false;
  EXPECT_EQ(judge({}, {program(0, {{"rdma_en2", 0}})})[0].state, State::kActive);
}

TEST_F(Standings, who_stands_still_without_a_reason_is_idle) {
  const std::vector<Program> same{program(0, {{"rdma_en2", 7}}), program(1, {{"rdma_en3", 7}})};
  for (const Standing& one : judge(same, same)) {
    EXPECT_EQ(one.state, State::kIdle);
  }
}

TEST_F(Standings, a_cut_cable_of_an_open_port_stalls) {
  is_up_[1] = false;
  const std::vector<Program> same{program(1, {{"rdma_en2", 7}}), program(3, {{"rdma_en2", 7}})};
  const auto all = judge(same, same);
  EXPECT_EQ(all[0].state, State::kStalled);
  EXPECT_EQ(standing_text(all[0]), "node n1's job (pid 101) moves nothing: cable 1 (n1:rdma_en2 - n2:rdma_en3) is cut");
  EXPECT_EQ(all[1].state, State::kIdle);  // its way leads elsewhere
}

TEST_F(Standings, who_waits_for_one_that_is_stalled_is_stalled_by_the_same) {
  is_up_[2] = false;
  const std::vector<Program> same{program(0, {{"rdma_en2", 1}}), program(1, {{"rdma_en2", 1}}),
                                  program(2, {{"rdma_en2", 1}})};
  for (const Standing& one : judge(same, same)) {
    EXPECT_EQ(one.cause, "cable 2 (n2:rdma_en2 - n3:rdma_en3) is cut");
  }
}

TEST_F(Standings, who_moves_passes_no_stall_on) {
  is_up_[2] = false;
  const std::vector<Program> before{program(0, {{"rdma_en2", 1}}), program(1, {{"rdma_en2", 1}}),
                                    program(2, {{"rdma_en2", 1}})};
  std::vector<Program> now = before;
  now[1].ports[0].moved = 2;
  const auto all = judge(before, now);
  EXPECT_EQ(all[0].state, State::kIdle);
  EXPECT_EQ(all[1].state, State::kActive);
  EXPECT_EQ(all[2].state, State::kStalled);
}

TEST_F(Standings, a_death_at_the_other_end_stalls_while_its_run_goes_on) {
  deaths_ = {{"n3", 103, "job", "was killed by signal 11 (Segmentation fault)", 0, false}};
  const std::vector<Program> same{program(2, {{"rdma_en2", 1}})};
  EXPECT_EQ(judge(same, same)[0].cause, "node n3's job (pid 103) was killed by signal 11 (Segmentation fault)");
  deaths_[0].is_over = true;
  EXPECT_EQ(judge(same, same)[0].state, State::kIdle);
}

TEST_F(Standings, several_cut_cables_are_all_named) {
  is_up_[0] = is_up_[3] = false;
  const std::vector<Program> same{program(0, {{"rdma_en2", 1}, {"rdma_en3", 1}})};
  EXPECT_EQ(judge(same, same)[0].cause,
            "cable 0 (n0:rdma_en2 - n1:rdma_en3), cable 3 (n3:rdma_en2 - n0:rdma_en3) are cut");
}

}  // namespace
}  // namespace ringbolt::tools
