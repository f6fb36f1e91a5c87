#include "fault/look.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "fault/plan_text.h"

namespace ringbolt::fault {
namespace {

Plan plan_of(const std::string& text) {
  auto plan = parse_plan(text);
  EXPECT_TRUE(plan) << text;
  return plan ? *plan : Plan{};
}

const std::vector<Place> kPorts{{0, 0, "rdma_en2"}, {0, 1, "rdma_en3"}, {0, 2, "rdma_en4"}};

TEST(FaultLook, leaves_all_as_it_is_without_rules) {
  EXPECT_EQ(gid_order(plan_of("loss 1%"), kPorts[0], 3), (std::vector<size_t>{0, 1, 2}));
  EXPECT_EQ(device_names(plan_of(""), kPorts), (std::vector<std::string>{"rdma_en2", "rdma_en3", "rdma_en4"}));
}

TEST(FaultLook, gives_a_table_another_order_each_entry_once) {
  for (int seed = 0; seed < 100; ++seed) {
    std::vector<size_t> order = gid_order(plan_of("gid-shuffle seed " + std::to_string(seed)), kPorts[0], 3);
    EXPECT_NE(order, (std::vector<size_t>{0, 1, 2})) << seed;
    EXPECT_EQ(order, gid_order(plan_of("gid-shuffle seed " + std::to_string(seed)), kPorts[0], 3));
    std::ranges::sort(order);
    EXPECT_EQ(order, (std::vector<size_t>{0, 1, 2})) << seed;
  }
  EXPECT_EQ(gid_order(plan_of("gid-shuffle"), kPorts[0], 1), (std::vector<size_t>{0}));
}

TEST(FaultLook, empties_the_table_of_the_port_that_it_is_for) {
  EXPECT_TRUE(gid_order(plan_of("gid-empty port rdma_en3"), kPorts[1], 3).empty());
  EXPECT_EQ(gid_order(plan_of("gid-empty port rdma_en3"), kPorts[0], 3).size(), 3U);
}

TEST(FaultLook, exchanges_names_so_that_no_port_keeps_its_own) {
  for (int seed = 0; seed < 20; ++seed) {
    std::vector<std::string> names = device_names(plan_of("rename-devices seed " + std::to_string(seed)), kPorts);
    for (size_t i = 0; i < names.size(); ++i) {
      EXPECT_NE(names[i], kPorts[i].port);
    }
    std::ranges::sort(names);
    EXPECT_EQ(names, (std::vector<std::string>{"rdma_en2", "rdma_en3", "rdma_en4"}));
  }
  EXPECT_EQ(device_names(plan_of("rename-devices node 1"), kPorts)[0], "rdma_en2");
  EXPECT_EQ(device_names(plan_of("rename-devices port rdma_en3 seed 4"), kPorts)[1], "rdma_en8");
  EXPECT_EQ(device_names(plan_of("rename-devices"), {{{}, {}, "rdma_lo"}})[0], "rdma_lo2");
  // Two of the next ten numbers are others'.
  for (int seed = 0; seed < 10; ++seed) {
    const auto names = device_names(plan_of("rename-devices port rdma_en2 seed " + std::to_string(seed)), kPorts);
    EXPECT_TRUE(names[0] != "rdma_en2" && names[0] != "rdma_en3" && names[0] != "rdma_en4") << names[0];
  }
}

}  // namespace
}  // namespace ringbolt::fault
