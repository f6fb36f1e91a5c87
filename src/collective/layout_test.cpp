#include "collective/layout.h"

#include <gtest/gtest.h>

namespace ringbolt::collective {
namespace {

TEST(Layout, places_shares_one_after_the_other) {
  const Problem problem{Operation::all_gather, 3, 0, {8, 0, 4}, 4};
  EXPECT_EQ(pieces_of(problem), (std::vector<Piece>{{0, 8}, {8, 0}, {8, 4}}));
  EXPECT_EQ(input_bytes(problem, 2), 4u);
  EXPECT_EQ(output_bytes(problem, 1), 12u);
}

TEST(Layout, reads_all_to_all_by_rows_and_columns) {
  const Problem problem{Operation::all_to_all, 2, 0, {1, 2, 3, 4}, 1};
  EXPECT_EQ(row_of(problem, 1), (std::vector<Piece>{{0, 3}, {3, 4}}));
  EXPECT_EQ(column_of(problem, 1), (std::vector<Piece>{{0, 2}, {2, 4}}));
  EXPECT_EQ(input_bytes(problem, 0), 3u);
  EXPECT_EQ(output_bytes(problem, 0), 4u);
}

TEST(Layout, gives_rooted_operations_to_the_root_alone) {
  const Problem gather{Operation::gather, 2, 1, {4, 8}, 4};
  EXPECT_EQ(output_bytes(gather, 0), 0u);
  EXPECT_EQ(output_bytes(gather, 1), 12u);
  const Problem broadcast{Operation::broadcast, 2, 1, {4}, 4};
  EXPECT_EQ(input_bytes(broadcast, 0), 0u);
  EXPECT_EQ(output_bytes(broadcast, 0), 4u);
}

TEST(Layout, cuts_whole_elements) {
  EXPECT_EQ(cut_evenly({16, 20}, 4, 3), (std::vector<Piece>{{16, 8}, {24, 8}, {32, 4}}));
  EXPECT_EQ(cut_evenly({0, 4}, 4, 2), (std::vector<Piece>{{0, 4}, {4, 0}}));
  EXPECT_EQ(cut({0, 40}, 4, {1, 3, 1}), (std::vector<Piece>{{0, 8}, {8, 24}, {32, 8}}));
  EXPECT_EQ(cut({4, 4}, 4, {1, 1, 0}), (std::vector<Piece>{{4, 4}, {8, 0}, {8, 0}}));
}

}  // namespace
}  // namespace ringbolt::collective
