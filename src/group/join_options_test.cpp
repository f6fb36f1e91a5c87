#include "group/join_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "group/failure.h"

namespace ringbolt::group {
namespace {

using bootstrap::Environment;
using ::testing::HasSubstr;

TEST(JoinOptions, what_is_said_wins_over_the_environment) {
  JoinOptions options;
  options.environment = Environment{{"RINGBOLT_RANK", "1"}, {"RINGBOLT_CRC", "off"}, {"RANK", "3"}};
  options.said = {{"RINGBOLT_RANK", "2"}, {"RINGBOLT_GROUP", "ours"}};
  EXPECT_EQ(variables_of(options),
            (Environment{{"RINGBOLT_RANK", "2"}, {"RINGBOLT_CRC", "off"}, {"RANK", "3"}, {"RINGBOLT_GROUP", "ours"}}));
}

TEST(JoinOptions, nothing_said_is_the_process_and_an_empty_environment_is_empty) {
  EXPECT_EQ(variables_of({}), bootstrap::environment_of_process());
  JoinOptions options;
  options.environment.emplace();
  EXPECT_EQ(variables_of(options), Environment());
}

TEST(JoinOptions, a_secret_takes_the_place_of_a_file_with_one) {
  JoinOptions options;
  options.environment = Environment{{"RINGBOLT_SECRET_FILE", "/none"}};
  EXPECT_EQ(variables_of(options).count("RINGBOLT_SECRET_FILE"), 1U);
  options.said = {{"RINGBOLT_SECRET", "x"}};
  EXPECT_EQ(variables_of(options), (Environment{{"RINGBOLT_SECRET", "x"}}));
}

TEST(JoinOptions, a_place_is_a_coordinator_with_brackets_where_they_belong) {
  JoinOptions options;
  options.environment = Environment{{"RINGBOLT_COORDINATOR", "10.0.0.9:1"}};
  options.host = "fd77::1";
  EXPECT_EQ(variables_of(options).at("RINGBOLT_COORDINATOR"), "10.0.0.9:1") << "without a port it is no place";
  options.port = 4000;
  EXPECT_EQ(variables_of(options).at("RINGBOLT_COORDINATOR"), "[fd77::1]:4000");
}

TEST(JoinOptions, plans_are_of_the_environment) {
  EXPECT_EQ(plan_of({}, {}).verbs, "auto");
  EXPECT_EQ(plan_of({}, {}).checksums, engine::Checksums::carried);
  EXPECT_TRUE(plan_of({}, {}).is_measured);
  const mesh::MeshPlan plan =
      plan_of({{"RINGBOLT_VERBS", "soft"}, {"RINGBOLT_CRC", "every"}, {"RINGBOLT_MEASURE", "off"}}, {.rank = 3});
  EXPECT_EQ(plan.verbs, "soft");
  EXPECT_EQ(plan.checksums, engine::Checksums::every);
  EXPECT_FALSE(plan.is_measured);
  EXPECT_EQ(plan.meeting.rank, 3U);
  for (const char* name : {"RINGBOLT_CRC", "RINGBOLT_MEASURE"}) {
    try {
      (void)plan_of({{name, "perhaps"}}, {});
      ADD_FAILURE() << name;
    } catch (const JoinError& error) {
      EXPECT_THAT(error.what(), HasSubstr(std::string(name) + " is \"perhaps\""));
    }
  }
}

}  // namespace
}  // namespace ringbolt::group
