#include "group/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>

namespace ringbolt::group {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

const fabric::Graph kRing{3, {{0, 1}, {0, 2}, {1, 2}}};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  return lines;
}

TEST(Explain, says_where_the_times_come_from) {
  collective::CostModel model;
  model.latency_us = 2.5;
  model.bytes_per_us = 1250;
  const collective::Topology topology(kRing, model);
  EXPECT_THAT(explain("all_reduce", 100, Type::float32, topology, 0),
              StartsWith("by 2.5 us a hop and 1250 MB/s for a cable, which nobody has measured\n"));
  EXPECT_THAT(explain("all_reduce", 100, Type::float32, topology, 1), HasSubstr("measured on 1 link when"));
  EXPECT_THAT(explain("all_reduce", 100, Type::float32, topology, 3), HasSubstr("measured on 3 links when"));
}

TEST(Explain, lists_the_fastest_schedule_first) {
  const collective::Topology topology(kRing);
  for (const char* operation :
       {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "gather", "scatter", "all_to_all"}) {
    const auto lines = lines_of(explain(operation, 1'000'000, Type::int32, topology, 0));
    ASSERT_GE(lines.size(), 2U) << operation;
    double last_us = 0;
    for (size_t i = 1; i < lines.size(); ++i) {
      std::istringstream words(lines[i]);
      std::string name;
      std::string unit;
      double time_us = -1;
      ASSERT_TRUE(words >> name >> time_us >> unit) << lines[i];
      EXPECT_EQ(unit, "us");
      EXPECT_GE(time_us, last_us) << lines[i];
      last_us = time_us;
    }
  }
}

TEST(Explain, more_elements_take_longer) {
  const collective::Topology topology(kRing);
  const auto fastest_us = [&](size_t count) {
    std::istringstream words(lines_of(explain("all_reduce", count, Type::int32, topology, 0)).at(1));
    std::string name;
    double time_us = 0;
    words >> name >> time_us;
    return time_us;
  };
  EXPECT_LT(fastest_us(10), fastest_us(10'000'000));
}

TEST(Explain, says_what_there_is_not) {
  const collective::Topology topology(kRing);
  EXPECT_EQ(explain("all_recude", 1, Type::int32, topology, 0), "there is no collective \"all_recude\"\n");
  EXPECT_EQ(explain("barrier", 1, Type::int32, topology, 0), "there is no collective \"barrier\"\n");
  EXPECT_THAT(explain("all_reduce", 1, static_cast<Type>(200), topology, 0), StartsWith("type 200: there are "));
}

}  // namespace
}  // namespace ringbolt::group
