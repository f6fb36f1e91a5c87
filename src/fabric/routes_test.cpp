#include "fabric/routes.h"

#include <gtest/gtest.h>

#include "fabric/builders.h"

namespace ringbolt::fabric {
namespace {

TEST(Routes, take_the_lowest_of_equal_neighbours) {
  const Routes routes = shortest_routes(ring(4));
  for (const Route& route : routes) {
    if (route.front().from == 2 && route.back().to == 0) {
      EXPECT_EQ(route, (Route{{2, 1, 0}, {1, 0, 0}}));
    }
  }
}

TEST(Routes, leave_out_who_cannot_be_reached) {
  const Graph cut = without_cable(line(4), 1);
  EXPECT_EQ(shortest_routes(cut).size(), 4U);
  EXPECT_EQ(up_down_routes(cut, 0).size(), 4U);
}

TEST(Routes, up_and_down_cost_what_is_known) {
  const struct {
    const char* name;
    Graph graph;
    uint32_t shortest_load;
    uint32_t up_down_thousandths;
  } known[] = {{"ring 8", ring(8), 10, 2571},
               {"Petersen", petersen(), 5, 1822},
               {"Heawood", periodic_chords(14, 2, {{0, 5}}), 16, 2341}};
  for (const auto& one : known) {
    const RouteUse shortest = use_of(shortest_routes(one.graph));
    EXPECT_EQ(shortest.sum, distances(one.graph).sum) << one.name;
    EXPECT_EQ(shortest.most_load, one.shortest_load) << one.name;
    const RouteUse up_down = use_of(best_up_down_routes(one.graph));
    const uint32_t n_pairs = one.graph.n_nodes * (one.graph.n_nodes - 1);
    EXPECT_EQ((up_down.sum * 1000 + n_pairs / 2) / n_pairs, one.up_down_thousandths) << one.name;
    EXPECT_GT(up_down.most_load, shortest.most_load) << one.name;
  }
}

TEST(Routes, in_hop_classes_have_one_for_each_hop) {
  const RouteUse use = use_of(with_hop_classes(shortest_routes(petersen())));
  EXPECT_EQ(use.n_classes, 2U);
  EXPECT_EQ(use.most_hops, 2U);
}

}  // namespace
}  // namespace ringbolt::fabric
