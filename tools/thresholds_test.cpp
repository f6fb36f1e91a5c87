#include "thresholds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "failure.h"

namespace ringbolt::tools {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kMeasured = R"({"line_rate_gbps": 40, "p99_us": 7, "results": [
  {"size": 8, "latency": {"p99_us": 12.5}, "bandwidth": {"average_gbps": 39}},
  {"size": 64, "latency": {"p99_us": 31}, "bandwidth": {"average_gbps": null}}], "name": "p99_us"})";

TEST(Thresholds, name_the_value_its_place_and_the_bound) {
  EXPECT_THAT(crossed_thresholds(kMeasured, {"latency.p99_us > 20"}),
              ElementsAre("results[1].latency.p99_us is 31: --fail-if latency.p99_us > 20"));
  EXPECT_THAT(crossed_thresholds(kMeasured, {"p99_us>=31", "size<64"}),
              ElementsAre(HasSubstr("[1].latency.p99_us is 31"), HasSubstr("results[0].size is 8")));
  EXPECT_THAT(crossed_thresholds(kMeasured, {"p99_us>31", "p99_us<7"}), IsEmpty());
  EXPECT_THAT(crossed_thresholds("no JSON", {}), IsEmpty());
}

TEST(Thresholds, are_parts_of_numbers_beside_and_around) {
  EXPECT_THAT(crossed_thresholds(kMeasured, {"average_gbps<0.98*line_rate_gbps"}),
              ElementsAre(HasSubstr("average_gbps is 39: --fail-if average_gbps<0.98*line_rate_gbps (39.2)"),
                          HasSubstr("[1].bandwidth.average_gbps was not measured")));
  EXPECT_THAT(crossed_thresholds(kMeasured, {"average_gbps<0.9*line_rate_gbps"}),
              ElementsAre(HasSubstr("was not measured")));
  EXPECT_THAT(crossed_thresholds(kMeasured, {"size<line_rate_gbps"}), ElementsAre(HasSubstr("results[0].size is 8")));
}

TEST(Thresholds, that_make_no_sense_are_refused_with_what_there_is) {
  for (const char* text : {"", "p99_us", "p99_us>", ">3", "p99_us>3x", "p99_us>2*", "p99_us>2*3", "p99_us=3",
                           "p99_us>2**size", "3>p99_us"}) {
    EXPECT_THROW(parse_threshold(text), UsageError) << text;
  }
  EXPECT_THROW(crossed_thresholds(kMeasured, {"average_gbps<1*rate"}), UsageError);
  for (const char* text : {"p99_us>nan", "p99_us>inf", "p99_us<nan*size", "p99_us>-inf"}) {
    EXPECT_THROW(crossed_thresholds(kMeasured, {text}), UsageError) << text;
  }
  try {
    crossed_thresholds(R"({"line_rate_gbps": 0, "goodput_gbps": 8})", {"goodput_gbps<0.9*line_rate_gbps"});
    ADD_FAILURE() << "nothing is below no line rate";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("goodput_gbps<0.9*line_rate_gbps"), HasSubstr("--line-rate GBPS")));
  }
  try {
    crossed_thresholds(kMeasured, {"p99>1"});
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("average_gbps, line_rate_gbps, p99_us, size"));
  }
}

TEST(Thresholds, change_the_exit_code_of_what_went_well) {
  EXPECT_EQ(status_within(kOk, "perf", kMeasured, {"size<1"}), kOk);
  EXPECT_EQ(status_within(kOk, "perf", kMeasured, {"size<9"}), kFoundProblem);
  EXPECT_EQ(status_within(130, "perf", kMeasured, {"size<9"}), 130);
}

}  // namespace
}  // namespace ringbolt::tools
