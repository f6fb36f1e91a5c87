#include "check/outcome.h"

#include <gtest/gtest.h>

namespace ringbolt::tools::check {
namespace {

Report broken() {
  Report report;
  report.rank = 2;
  report.done = 5;
  report.checksums = {1, 2, 0xFFFFFFFF};
  report.add({"all_sum", 13'107, "random", 1, "", 17, "3", "2"});
  report.add({"all_sum", 13'107, "random", 2, "", 18, "3", "2"});
  return report;
}

TEST(Report, keeps_the_first_and_counts_all) {
  EXPECT_EQ(broken().bad, 2U);
  EXPECT_EQ(broken().text(),
            "rank 2: 5 done, 2 bad; first: all_sum of 13107, random, round 1: element 17: want 3, got 2");
}

TEST(Report, survives_its_journey) {
  EXPECT_EQ(parse(emit(broken())), broken());
  EXPECT_EQ(parse(emit(Report{})), Report{});
  EXPECT_FALSE(parse(""));
  EXPECT_FALSE(parse("{}"));
  EXPECT_FALSE(parse(emit(broken()).substr(1)));
}

Outcome outcome_of(std::vector<uint32_t> first, std::vector<uint32_t> second) {
  Outcome outcome;
  outcome.n_ranks = 2;
  outcome.scale = "ci";
  outcome.steps = {{false, 7, Pattern::ones, 0}, {false, 7, Pattern::ones, 1}};
  outcome.n_cases = 2;
  outcome.reports = {{0, 2, 0, std::nullopt, false, std::move(first)},
                     {1, 2, 0, std::nullopt, false, std::move(second)}};
  return outcome;
}

TEST(Outcome, ranks_with_different_bits_are_wrong) {
  EXPECT_TRUE(is_right(outcome_of({1, 2}, {1, 2})));
  const Outcome different = outcome_of({1, 2}, {1, 3});
  EXPECT_FALSE(is_right(different));
  EXPECT_NE(outcome_text(different).find("all_sum of 7, ones, round 1: rank 1 has CRC-32C 00000003, rank 0 00000002"),
            std::string::npos);
}

TEST(Outcome, ranks_that_tell_of_more_than_was_done_are_wrong) {
  const Outcome longer = outcome_of({1, 2, 3}, {1, 2, 4});
  EXPECT_FALSE(is_right(longer));
  EXPECT_NE(outcome_text(longer).find("rank 1 and rank 0 tell of more than the 2 collectives"), std::string::npos);
}

TEST(Outcome, repetitions_with_different_bits_are_wrong) {
  Outcome outcome = outcome_of({1, 2}, {1, 2});
  outcome.is_matrix = true;
  outcome.repeats = 2;
  EXPECT_FALSE(is_right(outcome));
  outcome.reports[0].checksums = outcome.reports[1].checksums = {9, 9};
  EXPECT_TRUE(is_right(outcome));
}

TEST(Outcome, silence_badness_and_nothing_done_are_wrong) {
  Outcome outcome = outcome_of({1, 2}, {1, 2});
  outcome.reports[1].bad = 1;
  EXPECT_FALSE(is_right(outcome));
  outcome = outcome_of({1, 2}, {1, 2});
  outcome.silence = "rank 1 is gone";
  EXPECT_FALSE(is_right(outcome));
  outcome = outcome_of({}, {});
  outcome.reports[0].done = 0;
  EXPECT_FALSE(is_right(outcome));
}

}  // namespace
}  // namespace ringbolt::tools::check
