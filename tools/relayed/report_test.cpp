#include "relayed/report.h"

#include <gtest/gtest.h>

namespace ringbolt::tools::relayed {
namespace {

TEST(RelayedReport, comes_back_as_it_was) {
  const Report good{0, 3, {1, 2}, {"", false, true, 2.5, 4.5, 10, 50, 1U << 20U, 123456}};
  Report bad{3, 0, {2, 1}, {}};
  bad.figures.problem = "rank 3: no \"way\" \\ to rank 0";
  EXPECT_EQ(parse("n0 says something\n" + emit(good) + "\n" + emit(bad)), (std::vector<Report>{good, bad}));
}

TEST(RelayedReport, what_is_none_is_passed_over) {
  const std::string whole = emit({0, 2, {1}, {"", false, true, 1, 2, 3, 4, 5}});
  EXPECT_TRUE(parse("").empty());
  EXPECT_TRUE(parse(whole.substr(1)).empty());
  EXPECT_TRUE(parse(whole.substr(0, whole.size() - 3)).empty());
  EXPECT_TRUE(parse("ringbolt-relayed {}\nringbolt-relayed [1\nringbolt-relayed {\"from\":-1}\n").empty());
  EXPECT_EQ(parse(whole.substr(0, whole.size() - 1)).size(), 1U);  // without its line end
}

}  // namespace
}  // namespace ringbolt::tools::relayed
