#include "fabric/relaying.h"

#include <gtest/gtest.h>

#include "fabric/builders.h"
#include "fabric/damage.h"
#include "fabric/deadlock.h"
#include "fabric/search.h"

namespace ringbolt::fabric {
namespace {

uint32_t worst_diameter(const Graph& graph) {
  const CutCost worst = worst_of(costs_of_cuts(graph));
  return worst.is_connected ? worst.diameter : distances(graph).diameter;
}

TEST(Relaying, is_free_of_deadlock_whatever_it_chooses) {
  const struct {
    const char* name;
    Graph graph;
    Discipline discipline;
    uint32_t n_relay_classes;
  } known[] = {
      {"K4", full_mesh(4), Discipline::hop_classes, 5}, {"Petersen", petersen(), Discipline::hop_classes, 5},
      {"ring 8", ring(8), Discipline::hop_classes, 8},  {"ring 12", ring(12), Discipline::dateline, 2},
      {"line 12", line(12), Discipline::one_class, 1},  {"torus 3x18", torus({3, 18}), Discipline::up_down, 1},
  };
  for (const auto& one : known) {
    const Relaying relaying = choose_relaying(one.graph, worst_diameter(one.graph));
    EXPECT_EQ(relaying.discipline, one.discipline) << one.name << discipline_text(relaying.discipline);
    EXPECT_EQ(relaying.n_relay_classes, one.n_relay_classes) << one.name;
    const Routes routes = routes_of(one.graph, relaying.discipline);
    EXPECT_TRUE(check_deadlock(routes).is_free()) << one.name;
    EXPECT_LE(use_of(routes).most_hops, relaying.most_hops) << one.name;
  }
}

TEST(Damage, of_parallel_rails_and_bridges) {
  Graph graph = line(3);
  join(graph, 0, 1);
  sort_cables(graph);
  const std::vector<CutCost> costs = costs_of_cuts(graph);
  ASSERT_EQ(costs.size(), 3U);
  EXPECT_TRUE(costs[0].is_connected);
  EXPECT_TRUE(costs[1].is_connected);
  EXPECT_EQ(costs[1].tree_rate, 1);
  EXPECT_EQ(costs[1].lambda, 1);
  EXPECT_EQ(costs[2].lambda, 0) << "it parts them";
  EXPECT_FALSE(costs[2].is_connected);
  EXPECT_FALSE(worst_of(costs).is_connected);
}

TEST(Damage, of_a_large_mesh_is_told_without_rates) {
  const Graph mesh = full_mesh(40);
  EXPECT_FALSE(has_cut_rates(mesh));
  EXPECT_EQ(worst_of(costs_of_cuts(mesh)).diameter, 2U);
  EXPECT_TRUE(has_cut_rates(hypercube(6)));
}

TEST(Damage, of_searched_graphs_leaves_them_connected) {
  const Graph graph = search_graph(24, 3, {.n_steps = 20'000, .n_attempts = 1});
  const CutCost worst = worst_of(costs_of_cuts(graph));
  EXPECT_TRUE(worst.is_connected);
  EXPECT_LE(worst.diameter, 7U);
}

}  // namespace
}  // namespace ringbolt::fabric
