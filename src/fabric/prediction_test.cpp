#include "fabric/prediction.h"

#include <gtest/gtest.h>

#include "fabric/bounds.h"
#include "fabric/golden_graphs_test_support.h"

namespace ringbolt::fabric {
namespace {

constexpr CostModel kModel{.alpha_us = 10, .bytes_per_us = 5000};
constexpr double kMuch = 1 << 30;

TEST(Prediction, comes_near_the_bounds_for_large_vectors) {
  for (const GoldenGraph& one : golden_graphs()) {
    const Prediction prediction(one.graph, kModel);
    const double ideal_us = kMuch / kModel.bytes_per_us;
    const double n = one.graph.n_nodes;
    const double reduce = ideal_us / one.tree_rate.value();
    EXPECT_GE(prediction.all_reduce(kMuch).time_us, reduce * 0.999) << one.name;
    EXPECT_LE(prediction.all_reduce(kMuch).time_us, reduce * 1.15) << one.name;
    const double gather = ideal_us / n / one.shard_rate.value();
    EXPECT_GE(prediction.all_gather(kMuch).time_us, gather * 0.999) << one.name;
    EXPECT_LE(prediction.all_gather(kMuch).time_us, gather * 1.15) << one.name;
    EXPECT_GE(prediction.broadcast(kMuch).time_us, ideal_us / rates_of_nodes(one.graph)[0].value() * 0.999) << one.name;
    EXPECT_NEAR(prediction.all_to_all(kMuch).time_us, ideal_us / n / one.pair_rate.value(), 1000) << one.name;
  }
}

TEST(Prediction, of_small_vectors_is_a_matter_of_hops) {
  const Prediction mesh(full_mesh(4), kModel);
  EXPECT_EQ(mesh.all_reduce(8).schedule, "exchange");
  EXPECT_NEAR(mesh.all_reduce(8).time_us, 10, 0.01);
  EXPECT_NEAR(Prediction(petersen(), kModel).all_reduce(8).time_us, 20, 0.1);
  EXPECT_NEAR(Prediction(line(5), kModel).broadcast(8).time_us, 40, 0.1);
}

TEST(Prediction, of_a_mesh_changes_its_schedule_where_both_cost_the_same) {
  const Prediction mesh(full_mesh(4), kModel);
  const double equal = 10.0 * 5000 * 4 / 2;  // alpha B N / (N - 2)
  EXPECT_EQ(mesh.all_reduce(equal * 0.99).schedule, "exchange");
  EXPECT_EQ(mesh.all_reduce(equal * 1.01).schedule, "direct");
}

TEST(Prediction, of_a_large_mesh_needs_no_packing) {
  const Prediction mesh(full_mesh(40), kModel);
  EXPECT_FALSE(mesh.has_directed_trees());
  EXPECT_NEAR(mesh.all_gather(kMuch).time_us, kMuch / 40 / 5000, 100);
  EXPECT_EQ(mesh.broadcast(kMuch).schedule, "scatter");
  EXPECT_NEAR(mesh.broadcast(kMuch).time_us, kMuch / 39 / 5000, 1000);
  EXPECT_TRUE(Prediction(petersen(), kModel).has_directed_trees());
}

TEST(Prediction, of_a_pipeline_is_that_of_the_best_chunk) {
  // 4 levels, 3 MB at 5000 bytes/us: chunks of sqrt(3e6 * 10 * 5000 / 3) bytes.
  const double bytes = 3e6;
  const double ideal = std::pow(std::sqrt(bytes / 5000) + std::sqrt(3 * 10.0), 2);
  EXPECT_NEAR(pipelined_us(kModel, 4, bytes, 5000), ideal, ideal * 0.01);
  EXPECT_DOUBLE_EQ(pipelined_us(kModel, 1, 5000, 5000), 10 + 1);
}

TEST(Prediction, never_grows_shorter_with_the_vector) {
  const Prediction prediction(petersen(), kModel);
  double before = 0;
  for (double bytes = 1; bytes < 1e10; bytes *= 1.7) {
    const double now = prediction.all_reduce(bytes).time_us;
    EXPECT_GE(now, before * 0.98) << bytes;  // chunks are whole
    before = now;
  }
}

}  // namespace
}  // namespace ringbolt::fabric
