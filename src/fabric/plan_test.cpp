#include "fabric/plan.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "fabric/addresses.h"
#include "fabric/builders.h"
#include "fabric/shape.h"

namespace ringbolt::fabric {
namespace {

const PlannedCable& cable_between(const Plan& plan, uint32_t a, uint32_t b) {
  const auto found =
      std::ranges::find_if(plan.cables, [&](const PlannedCable& one) { return one.a.node == a && one.b.node == b; });
  EXPECT_NE(found, plan.cables.end());
  return *found;
}

TEST(Plan, gives_every_cable_two_ports_of_its_own) {
  for (const auto& [n_nodes, n_ports] :
       {std::pair{2U, 4U}, {4U, 7U}, {5U, 3U}, {8U, 3U}, {10U, 3U}, {16U, 4U}, {7U, 2U}}) {
    const Graph graph = best_shape(n_nodes, n_ports)->graph;
    const Plan plan = make_plan(graph, n_ports);
    EXPECT_EQ(graph_of(plan), graph);
    std::set<std::pair<uint32_t, uint32_t>> plugged;
    for (const PlannedCable& cable : plan.cables) {
      EXPECT_LT(cable.a.node, cable.b.node);
      for (const PlannedEnd& end : {cable.a, cable.b}) {
        EXPECT_LT(end.port, n_ports);
        EXPECT_TRUE(plugged.insert({end.node, end.port}).second);
      }
    }
  }
}

TEST(Plan, of_a_circulant_has_the_same_ports_everywhere) {
  const Plan plan = make_plan(circulant(8, {1, 3, 4}), 5);
  EXPECT_EQ(cable_between(plan, 2, 3).a.port, 0U);
  EXPECT_EQ(cable_between(plan, 2, 3).b.port, 1U);
  EXPECT_EQ(cable_between(plan, 0, 7).a.port, 1U);  // backwards, across the seam
  EXPECT_EQ(cable_between(plan, 0, 7).b.port, 0U);
  EXPECT_EQ(cable_between(plan, 1, 4).a.port, 2U);
  EXPECT_EQ(cable_between(plan, 1, 4).b.port, 3U);
  EXPECT_EQ(cable_between(plan, 1, 5).a.port, 4U);
  EXPECT_EQ(cable_between(plan, 1, 5).b.port, 4U);
}

TEST(Plan, crossed_leads_from_odd_ports_to_even_ones) {
  for (const auto& [n_nodes, n_ports] : {std::pair{2U, 1U},
                                         {2U, 3U},
                                         {3U, 2U},
                                         {4U, 3U},
                                         {5U, 4U},
                                         {7U, 2U},
                                         {7U, 3U},
                                         {8U, 3U},
                                         {10U, 3U},
                                         {16U, 5U},
                                         {24U, 3U}}) {
    SCOPED_TRACE(testing::Message() << n_nodes << " nodes of " << n_ports << " ports");
    Plan plan = make_plan(best_shape(n_nodes, n_ports)->graph, n_ports);
    const Graph before = graph_of(plan);
    const std::vector<bool> is_last_odd = cross_ports(plan);
    EXPECT_EQ(graph_of(plan), before);
    std::set<std::pair<uint32_t, uint32_t>> plugged;
    const auto is_odd = [&, most = n_ports](const PlannedEnd& end) {
      return end.port % 2 == 1 || (end.port + 1 == most && is_last_odd[end.node]);
    };
    for (const PlannedCable& cable : plan.cables) {
      EXPECT_NE(is_odd(cable.a), is_odd(cable.b)) << cable.id;
      for (const PlannedEnd& end : {cable.a, cable.b}) {
        EXPECT_LT(end.port, n_ports);
        EXPECT_TRUE(plugged.insert({end.node, end.port}).second) << end.node << ':' << end.port;
      }
    }
    EXPECT_TRUE(n_ports % 2 == 1 || std::ranges::count(is_last_odd, true) == 0);
  }
}

TEST(Plan, of_others_has_ports_by_neighbour) {
  const Plan plan = make_plan(full_mesh(4), 3);
  EXPECT_EQ(cable_between(plan, 0, 3).a.port, 2U);
  EXPECT_EQ(cable_between(plan, 0, 3).b.port, 0U);
  EXPECT_EQ(cable_between(plan, 1, 2).a.port, 1U);
  EXPECT_EQ(cable_between(plan, 1, 2).b.port, 1U);
  const Plan rails = make_plan(best_shape(2, 3)->graph, 3);
  EXPECT_EQ(rails.cables[2], (PlannedCable{2, {0, 2}, {1, 2}, 2, 1}));
}

TEST(Plan, keeps_every_other_cable_when_one_comes_or_goes) {
  const AddressPool pool;
  const Plan before = make_plan(petersen(), 4);
  Plan plan = before;
  EXPECT_TRUE(remove_cable(plan, 7));
  EXPECT_FALSE(remove_cable(plan, 7));
  for (const PlannedCable& cable : plan.cables) {
    EXPECT_EQ(cable, before.cables[cable.id]);
  }
  const std::optional<uint32_t> added = add_cable(plan, 9, 0);
  ASSERT_EQ(added, 15U) << "the id of a cable that is gone must not come back";
  EXPECT_EQ(plan.cables.back(), (PlannedCable{15, {0, 3}, {9, 3}, 0, 1}));
  EXPECT_EQ(address_text(subnet_of(pool, *added)), "10.77.0.60");
  EXPECT_EQ(plan.cables[3], before.cables[3]);
  EXPECT_TRUE(add_cable(plan, 1, 2));
  EXPECT_EQ(plan.cables.back().rail, 1U) << "a second cable of the pair";
  EXPECT_FALSE(add_cable(plan, 9, 4)) << "node 9 has no port left";
}

TEST(Addresses, are_two_hosts_in_a_subnet_of_their_own) {
  for (const uint32_t prefix_length : {24U, 30U}) {
    const AddressPool pool{.prefix_length = prefix_length};
    std::set<uint32_t> used;
    const uint32_t mask = ~((1U << (32 - prefix_length)) - 1);
    for (uint32_t id = 0; id < pool.most_cables(); ++id) {
      const uint32_t subnet = subnet_of(pool, id);
      EXPECT_TRUE(used.insert(subnet).second);
      for (const bool is_lower : {true, false}) {
        const uint32_t address = end_address(pool, id, is_lower);
        ASSERT_EQ(address & mask, subnet);
        ASSERT_NE(address, subnet);              // the network
        ASSERT_NE(address | mask, 0xffffffffU);  // the broadcast address
        ASSERT_EQ(address >> 16U, pool.base >> 16U);
      }
    }
  }
  EXPECT_EQ(AddressPool{}.most_cables(), 16'384U);
  EXPECT_EQ(address_text(end_address({.prefix_length = 24}, 255, false)), "10.77.255.2");
  EXPECT_EQ(address_text(node_address({}, 0)), "10.76.0.1");
  EXPECT_EQ(address_text(node_address({}, 249)), "10.76.0.250");
}

}  // namespace
}  // namespace ringbolt::fabric
