// Ranks in JACCL's manner on devices like a Mac's: they run, and fail as they do there when something is wrong.
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>

#include "coordinator.h"
#include "device_matrix.h"
#include "rank_processes.h"
#include "runtime_folder.h"

namespace ringbolt::jaccl {
namespace {

namespace fs = std::filesystem;

class JacclProfileTest : public testing::TestWithParam<const char*> {
 protected:
  struct Outcome {
    int failed = 0;    ///< ranks whose exit code was not 0
    std::string said;  ///< by all of them, on standard error
  };

  /// `world` ranks on the default device like `profile`.
  Outcome run(size_t world, const std::string& profile, const std::string& setting = "JACCL_TEST=1") {
    const fs::path matrix = write_devices(folder_.path(), shared_device(world, "rdma_lo"));
    const Coordinator coordinator(static_cast<int>(world));
    std::vector<pid_t> ranks;
    for (size_t rank = 0; rank < world; ++rank) {
      ranks.push_back(start_process({"sh", "-c", "exec \"$0\" 2> \"$1\"", JACCL_RANK_PROGRAM, said_by(rank)},
                                    {std::string("LD_LIBRARY_PATH=") + RINGBOLT_LIBRARY_FOLDER, "RINGBOLT_LIKE=" + profile,
                                     "JACCL_RANK=" + std::to_string(rank), "JACCL_COORDINATOR=" + coordinator.address(),
                                     "JACCL_IBV_DEVICES=" + matrix.string(), setting}));
    }
    Outcome outcome;
    for (size_t rank = 0; rank < world; ++rank) {
      outcome.failed += wait_for_process(ranks[rank]) == 0 ? 0 : 1;
      std::ifstream file(said_by(rank));
      std::ostringstream text;
      text << file.rdbuf();
      outcome.said += text.str();
    }
    return outcome;
  }

  void expect_refusal(const Outcome& outcome, const std::string& rule, const std::string& error) {
    EXPECT_GT(outcome.failed, 0);
    EXPECT_NE(outcome.said.find(rule), std::string::npos) << outcome.said;
    EXPECT_NE(outcome.said.find(error), std::string::npos) << outcome.said;
  }

  std::string profile(const std::string& knobs = "") const { return std::string(GetParam()) + knobs; }

  conformance::RuntimeFolder folder_;

 private:
  std::string said_by(size_t rank) const { return (folder_.path() / ("said-" + std::to_string(rank))).string(); }
};
INSTANTIATE_TEST_SUITE_P(Like, JacclProfileTest, testing::Values("tn3205", "apple"),
                         [](const testing::TestParamInfo<const char*>& given) { return std::string(given.param); });

TEST_P(JacclProfileTest, two_ranks_exchange_every_size) {
  const Outcome outcome = run(2, profile());
  EXPECT_EQ(outcome.failed, 0) << outcome.said;
  EXPECT_EQ(outcome.said, "");
}

TEST_P(JacclProfileTest, ranks_exchange_every_size_over_the_cables_of_a_mesh) {
  ASSERT_EQ(run_process({RINGBOLT_COMMAND, "up", "--emulate", "mesh:3", "--like", profile()}, {}), 0);
  Matrix devices(3, std::vector<std::string>(3));
  for (size_t row = 0; row < 3; ++row) {  // the ports of a node lead to its neighbours in order
    for (size_t column = 0; column < 3; ++column) {
      devices[row][column] = row == column ? "" : "rdma_en" + std::to_string(2 + column - (column > row ? 1 : 0));
    }
  }
  const fs::path matrix = write_devices(folder_.path(), devices);
  {
    const Coordinator coordinator(3);
    EXPECT_EQ(run_process({RINGBOLT_COMMAND, "run", "--", JACCL_RANK_PROGRAM},
                          {"JACCL_COORDINATOR=" + coordinator.address(), "JACCL_IBV_DEVICES=" + matrix.string()}),
              0);
  }
  EXPECT_EQ(run_process({RINGBOLT_COMMAND, "down"}, {}), 0);
}

TEST_P(JacclProfileTest, index_1_is_not_where_the_address_is) {
  expect_refusal(run(2, profile(",gid=2")), "gid-index", "EINVAL");
}

TEST_P(JacclProfileTest, bridged_port_has_no_address) {
  const Outcome outcome = run(2, profile(",gid=empty"));
  EXPECT_EQ(outcome.failed, 2);
  EXPECT_NE(outcome.said.find("no IPv4-mapped GID in a table of 32"), std::string::npos) << outcome.said;
}

TEST_P(JacclProfileTest, three_ranks_on_one_device_need_more_than_a_hundred_regions) {
  expect_refusal(run(3, profile()), "mr-limit", "ENOMEM");
}

TEST_P(JacclProfileTest, reliable_connections_are_refused) {
  expect_refusal(run(2, profile(), "JACCL_TEST_QP_TYPE=RC"), "qp-type", "EOPNOTSUPP");
}

TEST_P(JacclProfileTest, eleventh_queue_pair_is_refused_whoever_holds_the_others) {
  setenv("RINGBOLT_LIKE", GetParam(), 1);
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  unsetenv("RINGBOLT_LIKE");
  ASSERT_EQ(count, 1);
  ibv_context* context = ibv_open_device(list[0]);
  ibv_pd* pd = ibv_alloc_pd(context);
  ibv_cq* cq = ibv_create_cq(context, 16, nullptr, nullptr, 0);
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq;
  init.cap = {1, 1, 1, 1, 0};
  init.qp_type = IBV_QPT_UC;
  std::vector<ibv_qp*> held;
  for (int i = 0; i < 10; ++i) {
    held.push_back(ibv_create_qp(pd, &init));
    ASSERT_NE(held.back(), nullptr);
  }
  expect_refusal(run(2, profile()), "qp-limit", "EBUSY");
  for (ibv_qp* qp : held) {
    ibv_destroy_qp(qp);
  }
  EXPECT_EQ(run(2, profile()).failed, 0);
  ibv_destroy_cq(cq);
  ibv_dealloc_pd(pd);
  ibv_close_device(context);
  ibv_free_device_list(list);
}

}  // namespace
}  // namespace ringbolt::jaccl
