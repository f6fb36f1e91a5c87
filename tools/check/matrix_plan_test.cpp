#include "check/matrix_plan.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

namespace ringbolt::tools::check {
namespace {

using ranks::Collective;

TEST(MatrixPlan, counts_are_odd_and_up_to_the_largest) {
  EXPECT_EQ(matrix_counts(1'048'579, 4), (std::vector<size_t>{0, 1, 7, 1009, 1023, 262'144}));
  EXPECT_EQ(matrix_counts(1'048'579, 1), (std::vector<size_t>{0, 1, 7, 1009, 4095, 1'048'579}));
  EXPECT_EQ(matrix_counts(7, 4), (std::vector<size_t>{0, 1}));
  EXPECT_EQ(matrix_counts(1, 8), (std::vector<size_t>{0}));
}

TEST(MatrixPlan, every_collective_type_and_reduction_is_there) {
  for (const bool is_thorough : {false, true}) {
    std::set<Collective> collectives;
    std::set<std::pair<Type, Reduction>> kinds;
    std::set<uint32_t> roots;
    for (const MatrixCase& one : matrix_cases({{}, 5000, is_thorough}, 5)) {
      collectives.insert(one.work.collective);
      roots.insert(one.work.root);
      if (one.work.collective == Collective::all_reduce) {
        kinds.insert({one.work.data.type, one.work.data.reduction});
      }
    }
    EXPECT_EQ(collectives.size(), ranks::kCollectives);
    EXPECT_EQ(kinds.size(), 14U * 5 - 2 - 1);  // no greatest complex number, no average of booleans
    EXPECT_EQ(roots.size(), 5U);
  }
}

TEST(MatrixPlan, those_that_are_asked_for) {
  for (const MatrixCase& one : matrix_cases({{Collective::gather}, 100, false}, 3)) {
    EXPECT_EQ(one.work.collective, Collective::gather);
    EXPECT_FALSE(one.work.is_in_place);
  }
  EXPECT_TRUE(matrix_cases({{Collective::send_recv}, 100, false}, 1).empty());
}

TEST(MatrixPlan, what_any_order_may_reduce_is_exact) {
  const auto cases = matrix_cases({{Collective::all_reduce}, 100, false}, 3);
  EXPECT_TRUE(std::any_of(cases.begin(), cases.end(), [](const MatrixCase& one) { return !one.is_reproducible; }));
  for (const MatrixCase& one : cases) {
    EXPECT_EQ(one.is_reproducible, !one.work.data.is_exact);
  }
}

}  // namespace
}  // namespace ringbolt::tools::check
