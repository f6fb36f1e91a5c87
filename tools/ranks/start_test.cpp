#include "ranks/start.h"

#include <gtest/gtest.h>

namespace ringbolt::tools::ranks {
namespace {

TEST(IsRank, if_the_environment_says_which) {
  EXPECT_FALSE(is_rank({}));
  EXPECT_FALSE(is_rank({{"RANK", ""}}));
  for (const char* name : {"RINGBOLT_RANK", "RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "JACCL_RANK",
                           "MLX_RANK", "RINGBOLT_NODE"}) {
    EXPECT_TRUE(is_rank({{name, "0"}})) << name;
  }
}

TEST(IsRank, not_in_a_shell_that_srun_has_started) {
  bootstrap::Environment shell = {
      {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}, {"PMIX_RANK", "0"}, {"PMI_RANK", "0"}, {"PMI_SIZE", "1"}};
  EXPECT_FALSE(is_rank(shell));
  shell["RINGBOLT_NODE"] = "2";  // ringbolt run, in that shell
  EXPECT_TRUE(is_rank(shell));
  EXPECT_TRUE(is_rank({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}}));
  // A job of several tasks, a step of one, and the other way round.
  EXPECT_FALSE(is_rank({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_STEP_NUM_TASKS", "1"}}));
  EXPECT_TRUE(is_rank({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}}));
}

TEST(TakeRank, has_namespaces_meet_at_rank_0) {
  bootstrap::Environment environment = {{"RINGBOLT_NODE", "3"}, {"RINGBOLT_MEETING_HOST", "10.76.0.1"}};
  take_rank(environment, 2, 3, 1);
  EXPECT_EQ(environment, (bootstrap::Environment{{"RINGBOLT_NODE", "3"},
                                                 {"RINGBOLT_RANK", "2"},
                                                 {"RINGBOLT_WORLD_SIZE", "3"},
                                                 {"RINGBOLT_MEETING_HOST", "10.76.0.2"}}));
  environment = {};  // an emulated cluster's, whose nodes share a machine
  take_rank(environment, 0, 1, 0);
  EXPECT_FALSE(environment.contains("RINGBOLT_MEETING_HOST"));
}

}  // namespace
}  // namespace ringbolt::tools::ranks
