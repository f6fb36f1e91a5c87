// Two, three and four ranks of a program in JACCL's manner, on the default device and, through the
// ringbolt command, on emulated meshes.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "coordinator.h"
#include "device_matrix.h"
#include "rank_processes.h"
#include "runtime_folder.h"

namespace ringbolt::jaccl {
namespace {

namespace fs = std::filesystem;

class JacclTest : public testing::TestWithParam<int> {
 protected:
  std::string library_path() const {
    return std::string("LD_LIBRARY_PATH=") + RINGBOLT_LIBRARY_FOLDER;
  }

  conformance::RuntimeFolder folder_;
};
INSTANTIATE_TEST_SUITE_P(All, JacclTest, testing::Values(2, 3, 4));

TEST_P(JacclTest, ranks_exchange_every_size_on_the_default_device) {
  const auto world = static_cast<size_t>(GetParam());
  const fs::path matrix = write_devices(folder_.path(), shared_device(world, "rdma_lo"));
  const Coordinator coordinator(GetParam());
  std::vector<pid_t> ranks;
  for (int rank = 0; rank < GetParam(); ++rank) {
    ranks.push_back(start_process({JACCL_RANK_PROGRAM},
                                  {library_path(), "JACCL_RANK=" + std::to_string(rank),
                                   "JACCL_COORDINATOR=" + coordinator.address(),
                                   "JACCL_IBV_DEVICES=" + matrix.string()}));
  }
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    EXPECT_EQ(wait_for_process(ranks[rank]), 0) << "rank " << rank;
  }
}

/// What each node's own file says about its ports: the device that leads to each neighbour.
Matrix read_ports(const fs::path& clusters, size_t nodes) {
  Matrix devices(nodes, std::vector<std::string>(nodes));
  for (const auto& entry : fs::recursive_directory_iterator(clusters)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("node-") || entry.path().extension() != ".ports") {
      continue;
    }
    const size_t node = std::stoul(name.substr(5));
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) {
      std::istringstream words(line);
      std::map<std::string, std::string> fields;
      for (std::string key, value; words >> key >> value;) {
        fields[key] = value;
      }
      if (fields.contains("port") && fields.contains("peer-node") && node < nodes) {
        devices[node].at(std::stoul(fields["peer-node"])) = fields["port"];
      }
    }
  }
  return devices;
}

TEST_P(JacclTest, ranks_exchange_every_size_over_the_cables_of_a_mesh) {
  if (GetParam() < 3) {
    GTEST_SKIP() << "a mesh of two is the pair that the default device has covered";
  }
  if (access(RINGBOLT_COMMAND, X_OK) != 0) {
    GTEST_SKIP() << "the ringbolt command is not built: " << RINGBOLT_COMMAND;
  }
  const std::string topology = "mesh:" + std::to_string(GetParam());
  ASSERT_EQ(run_process({RINGBOLT_COMMAND, "up", "--emulate", topology}, {}), 0);
  const Matrix devices =
      read_ports(folder_.path() / "clusters", static_cast<size_t>(GetParam()));
  const fs::path matrix = write_devices(folder_.path(), devices);
  {
    const Coordinator coordinator(GetParam());
    EXPECT_EQ(run_process({RINGBOLT_COMMAND, "run", "--", JACCL_RANK_PROGRAM},
                          {"JACCL_COORDINATOR=" + coordinator.address(),
                           "JACCL_IBV_DEVICES=" + matrix.string()}),
              0);
  }
  EXPECT_EQ(run_process({RINGBOLT_COMMAND, "down"}, {}), 0);
}

TEST(JacclOverlay, ranks_of_a_full_mesh_run_on_a_ring_by_the_overlay) {
  const conformance::RuntimeFolder folder;
  ASSERT_EQ(run_process({RINGBOLT_COMMAND, "up", "--emulate", "ring:4", "--overlay"}, {}), 0);
  const fs::path matrix = write_devices(folder.path(), shared_device(4, "ringbolt0"));
  {
    const Coordinator coordinator(4);
    EXPECT_EQ(run_process({RINGBOLT_COMMAND, "run", "--", JACCL_RANK_PROGRAM},
                          {"JACCL_COORDINATOR=" + coordinator.address(), "JACCL_IBV_DEVICES=" + matrix.string()}),
              0);
  }
  EXPECT_EQ(run_process({RINGBOLT_COMMAND, "down"}, {}), 0);
}

}  // namespace
}  // namespace ringbolt::jaccl
