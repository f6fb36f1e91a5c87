#include "collective/check.h"

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collective/builder.h"
#include "collective/problems_test_support.h"
#include "collective/steps.h"

namespace ringbolt::collective {
namespace {

using testing::HasSubstr;

/// A schedule on a ring of four that passes, to be spoilt.
struct Sample {
  explicit Sample(const std::string& name, Operation operation = Operation::all_reduce)
      : graph(fabric::ring(4)),
        problem(problem_of(operation, 4, 103, 4, 1)),
        schedule(build(name, problem, Topology(graph), limits)) {}

  std::string objection() const {
    const auto checked = check(schedule, problem, graph, limits);
    return checked ? "" : checked.error();
  }
  Step& step(uint32_t rank, uint32_t index) { return schedule.programs[rank].steps[index]; }

  fabric::Graph graph;
  Problem problem;
  Limits limits{64};
  Schedule schedule;
};

TEST(Check, counts_what_passes) {
  const Sample sample("exchange");
  const auto checked = check(sample.schedule, sample.problem, sample.graph, sample.limits);
  ASSERT_TRUE(checked) << checked.error();
  EXPECT_EQ(*checked, (CheckedSchedule{4 * 2 * 7, 2, 1, 4 * 3 * 412}));
}

TEST(Check, refuses_a_step_left_out) {
  Sample sample("direct");
  sample.schedule.programs[2].steps.pop_back();
  EXPECT_THAT(sample.objection(), HasSubstr("has no receiver"));
}

TEST(Check, refuses_swapped_offsets) {
  Sample sample("direct");
  std::swap(sample.step(2, 1).sources[0].offset, sample.step(2, 2).sources[0].offset);
  EXPECT_THAT(sample.objection(), HasSubstr("one of each rank"));
}

TEST(Check, refuses_a_wrong_lane) {
  Sample sample("direct");
  sample.step(0, 0).targets[0].lane = 2;
  EXPECT_THAT(sample.objection(), HasSubstr("lane 0 from rank 0 to rank 1 has no sender"));
  sample.step(0, 0).targets[0].lane = 1;
  EXPECT_THAT(sample.objection(), HasSubstr("sent twice"));
  sample.step(0, 0).targets[0].peer = 9;
  EXPECT_THAT(sample.objection(), HasSubstr("leads nowhere"));
}

TEST(Check, refuses_numbers_of_lanes_with_gaps) {
  Sample sample("exchange");
  sample.step(0, 0).targets[0].lane = 1;
  sample.step(1, 1).sources[0].lane = 1;
  EXPECT_THAT(sample.objection(), HasSubstr("lane 1 from rank 0 to rank 1: the number should be 0"));
}

TEST(Check, refuses_a_contribution_twice) {
  Sample sample("exchange");
  sample.step(3, 1).sources.push_back(from_local(Buffer::input, 0, 0));
  EXPECT_THAT(sample.objection(), HasSubstr("0@0 1@0 2@0 3@0 3@0"));
}

TEST(Check, refuses_a_contribution_left_out) {
  Sample sample("exchange");
  sample.step(3, 1).sources.pop_back();
  EXPECT_THAT(sample.objection(), HasSubstr("rank 3: output offset 0"));
}

TEST(Check, refuses_another_order_of_what_says_it_is_rank_ordered) {
  Sample sample("exchange");
  std::swap(sample.step(0, 1).sources[1], sample.step(0, 1).sources[2]);
  EXPECT_THAT(sample.objection(), HasSubstr("order of ranks"));
  sample.schedule.is_rank_ordered = false;
  EXPECT_EQ(sample.objection(), "");
}

TEST(Check, refuses_other_brackets_of_what_says_it_is_rank_ordered) {
  // x0 + (x1 + x2): the order is right, the brackets are not.
  const Problem problem = problem_of(Operation::reduce, 3, 4, 4);
  Schedule schedule{"by hand", true, std::vector<Program>(3)};
  add_step(schedule.programs[2], {16, 16, {from_local(Buffer::input, 0)}, {to_lane(1, 0, {})}});
  add_step(schedule.programs[1], {16, 16, {from_local(Buffer::input, 0), from_lane(2, 0)}, {to_lane(0, 0, {})}});
  add_step(schedule.programs[0],
           {16, 16, {from_local(Buffer::input, 0), from_lane(1, 0)}, {to_local(Buffer::output, 0)}, true});
  const auto checked = check(schedule, problem, fabric::line(3), {});
  ASSERT_FALSE(checked);
  EXPECT_THAT(checked.error(), HasSubstr("order of ranks"));
  schedule.is_rank_ordered = false;
  EXPECT_TRUE(check(schedule, problem, fabric::line(3), {}));
}

TEST(Check, refuses_a_last_touch_that_is_missing_or_twice) {
  Sample sample("direct");
  for (Step& step : sample.schedule.programs[1].steps) {
    step.finishes = false;
  }
  EXPECT_THAT(sample.objection(), HasSubstr("is not finished"));
  sample = Sample("direct");
  sample.schedule.programs[1].steps.back().finishes = true;
  EXPECT_THAT(sample.objection(), HasSubstr("finishes what is finished"));
  Sample gather("direct", Operation::all_gather);
  gather.step(0, 0).finishes = true;
  EXPECT_THAT(gather.objection(), HasSubstr("finishes in a all_gather"));
}

TEST(Check, refuses_a_path_without_cable) {
  Sample sample("direct");
  for (Step& step : sample.schedule.programs[0].steps) {
    for (Target& target : step.targets) {
      target.via.clear();
    }
  }
  EXPECT_THAT(sample.objection(), HasSubstr("from 0 to 2, which no cable joins"));
}

TEST(Check, refuses_chunks_that_differ_or_are_too_long) {
  Sample sample("direct");
  sample.step(0, 0).chunk_bytes = 32;
  EXPECT_THAT(sample.objection(), HasSubstr("in chunks of 32 are sent"));
  sample.step(0, 0).chunk_bytes = 128;
  EXPECT_THAT(sample.objection(), HasSubstr("whole elements of 4 up to 64"));
  sample.step(0, 0).chunk_bytes = 30;
  EXPECT_THAT(sample.objection(), HasSubstr("whole elements of 4 up to 64"));
}

TEST(Check, refuses_bytes_outside_of_a_buffer) {
  Sample sample("exchange");
  sample.step(1, 1).targets[0].offset = 4;
  EXPECT_THAT(sample.objection(), HasSubstr("do not fit"));
}

TEST(Check, refuses_what_is_read_before_it_is_written) {
  const Problem problem = problem_of(Operation::broadcast, 2, 4, 4);
  Schedule schedule{"by hand", true, std::vector<Program>(2)};
  add_step(schedule.programs[0], {16, 16, {from_local(Buffer::output, 0)}, {to_lane(1, 0, {})}});
  add_step(schedule.programs[0], {16, 16, {from_local(Buffer::input, 0)}, {to_local(Buffer::output, 0)}});
  add_step(schedule.programs[1], {16, 16, {from_lane(0, 0)}, {to_local(Buffer::output, 0)}});
  const auto early = check(schedule, problem, fabric::line(2), {});
  ASSERT_FALSE(early);
  EXPECT_THAT(early.error(), HasSubstr("rank 0, step 0, chunk 0: output offset 0 is read before it is written"));
  std::swap(schedule.programs[0].steps[0], schedule.programs[0].steps[1]);
  const auto unsaid = check(schedule, problem, fabric::line(2), {});
  ASSERT_FALSE(unsaid);
  EXPECT_THAT(unsaid.error(), HasSubstr("nothing says whether step 0 has written them"));
  schedule.programs[0].steps[1].sources[0].after = 0;
  EXPECT_TRUE(check(schedule, problem, fabric::line(2), {}));
}

TEST(Check, refuses_to_overwrite_in_place_what_is_still_to_be_sent) {
  Sample sample("exchange");
  sample.step(2, 1).sources[2].after = kNoStep;
  EXPECT_THAT(sample.objection(), HasSubstr("in place: rank 2, step 1, chunk 0: writes"));
}

TEST(Check, refuses_two_writers_of_the_same_bytes) {
  Sample sample("direct", Operation::all_gather);
  sample.step(0, 2).targets[0].offset = sample.step(0, 1).targets[0].offset;
  EXPECT_THAT(sample.objection(), HasSubstr("nothing says whether"));
}

TEST(Check, refuses_what_waits_for_ever) {
  Sample sample("exchange");
  // Each adds up only when all is sent, and one chunk of a lane cannot hold all.
  for (uint32_t rank = 0; rank < 4; ++rank) {
    sample.step(rank, 1).sources[rank].after_all = true;
  }
  EXPECT_THAT(sample.objection(), HasSubstr("it waits for ever"));
}

TEST(Check, refuses_a_rank_that_takes_no_part) {
  const Problem problem = problem_of(Operation::barrier, 2, 0, 1);
  const Schedule schedule{"nothing", true, std::vector<Program>(2)};
  const auto checked = check(schedule, problem, fabric::line(2), {});
  ASSERT_FALSE(checked);
  EXPECT_THAT(checked.error(), HasSubstr("rank 0 has no lane"));
}

TEST(Check, refuses_a_barrier_that_is_left_early) {
  Sample sample("dissemination", Operation::barrier);
  sample.step(1, 1).sources.erase(sample.step(1, 1).sources.begin());
  EXPECT_EQ(sample.objection(), "");  // step 1 still waits for rank 0, and rank 3 for step 1
  sample.step(1, 2).sources.erase(sample.step(1, 2).sources.begin());
  for (uint32_t rank = 0; rank < 4; ++rank) {
    for (uint32_t step = 1; step < 3; ++step) {
      auto& sources = sample.step(rank, step).sources;
      std::erase_if(sources, [](const Source& source) { return source.after != kNoStep; });
    }
    sample.step(rank, 1).sources.assign(1, from_local(Buffer::input, 0));
    sample.step(rank, 2).sources.push_back(from_lane((rank + 3) % 4, 0));
  }
  EXPECT_THAT(sample.objection(), HasSubstr("leaves the barrier before it has heard of rank"));
}

}  // namespace
}  // namespace ringbolt::collective
