#include "collective/check.h"

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collective/builder.h"
#include "collective/happenings.h"
#include "collective/problems_test_support.h"
#include "collective/steps.h"
#include "collective/symbols.h"

namespace ringbolt::collective {
namespace {

using testing::HasSubstr;

/// A schedule on a ring that passes, to be spoilt.
struct Sample {
  explicit Sample(const std::string& name, Operation operation = Operation::all_reduce, uint32_t n_ranks = 4)
      : graph(fabric::ring(n_ranks)),
        problem(problem_of(operation, n_ranks, 103, 4, 1)),
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

TEST(Check, refuses_a_wrong_transfer) {
  Sample sample("direct");
  sample.step(0, 0).targets[0].transfer = 2;
  EXPECT_THAT(sample.objection(), HasSubstr("transfer 0 from rank 0 to rank 1 has no sender"));
  sample.step(0, 0).targets[0].transfer = 1;
  EXPECT_THAT(sample.objection(), HasSubstr("sent twice"));
  sample.step(0, 0).targets[0].peer = 9;
  EXPECT_THAT(sample.objection(), HasSubstr("leads nowhere"));
}

TEST(Check, refuses_numbers_of_transfers_with_gaps) {
  Sample sample("exchange");
  sample.step(0, 0).targets[0].transfer = 1;
  sample.step(1, 1).sources[0].transfer = 1;
  EXPECT_THAT(sample.objection(), HasSubstr("transfer 1 from rank 0 to rank 1: the number should be 0"));
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
  add_step(schedule.programs[2], {16, 16, {from_local(Buffer::input, 0)}, {to_transfer(1, 0, {})}});
  add_step(schedule.programs[1],
           {16, 16, {from_local(Buffer::input, 0), from_transfer(2, 0)}, {to_transfer(0, 0, {})}});
  add_step(schedule.programs[0],
           {16, 16, {from_local(Buffer::input, 0), from_transfer(1, 0)}, {to_local(Buffer::output, 0)}, true});
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
  add_step(schedule.programs[0], {16, 16, {from_local(Buffer::output, 0)}, {to_transfer(1, 0, {})}});
  add_step(schedule.programs[0], {16, 16, {from_local(Buffer::input, 0)}, {to_local(Buffer::output, 0)}});
  add_step(schedule.programs[1], {16, 16, {from_transfer(0, 0)}, {to_local(Buffer::output, 0)}});
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
  // Each adds up only when all is sent, and one chunk of a transfer cannot hold all.
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
  EXPECT_THAT(checked.error(), HasSubstr("rank 0 has no transfer"));
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
    sample.step(rank, 2).sources.push_back(from_transfer((rank + 3) % 4, 0));
  }
  EXPECT_THAT(sample.objection(), HasSubstr("leaves the barrier before it has heard of rank"));
}

/// Of more than 32 ranks there are no lists of contributions, but fingerprints.
TEST(Check, refuses_the_same_on_many_ranks) {
  constexpr uint32_t kRanks = 40;
  for (const char* name : {"direct", "exchange", "ring", "tree", "halving"}) {
    EXPECT_EQ(Sample(name, Operation::all_reduce, kRanks).objection(), "") << name;
  }
  Sample twice("exchange", Operation::all_reduce, kRanks);
  twice.step(3, 1).sources.push_back(from_local(Buffer::input, 0, 0));
  EXPECT_THAT(twice.objection(), HasSubstr("rank 3: output offset 0, 64 bytes: comes from 41 inputs, the first 0@0"));
  twice.step(3, 1).sources.pop_back();
  twice.step(3, 1).sources.pop_back();
  EXPECT_THAT(twice.objection(), HasSubstr("transfer 0 from rank 39 to rank 3 has no receiver"));
  Sample place("direct", Operation::all_reduce, kRanks);
  std::swap(place.step(2, 1).sources[0].offset, place.step(2, 2).sources[0].offset);
  EXPECT_THAT(place.objection(), HasSubstr("40 inputs, the first 0@"));
  Sample order("exchange", Operation::all_reduce, kRanks);
  std::swap(order.step(0, 1).sources[30], order.step(0, 1).sources[31]);
  EXPECT_THAT(order.objection(), HasSubstr("order of ranks"));
  order.schedule.is_rank_ordered = false;
  EXPECT_EQ(order.objection(), "");
  Sample moved("direct", Operation::all_to_all, kRanks);
  std::swap(moved.step(7, 3).sources[0].offset, moved.step(7, 4).sources[0].offset);
  EXPECT_THAT(moved.objection(), HasSubstr("1 inputs, the first 7@"));
}

/// Of more than 64 ranks the root's memory is among those that are looked at.
TEST(Check, refuses_to_overwrite_what_is_still_to_be_sent_on_many_ranks) {
  const fabric::Graph graph = fabric::ring(70);
  const Problem problem = problem_of(Operation::all_reduce, 70, 10, 4, 1);  // one chunk
  Schedule schedule = build("exchange", problem, Topology(graph), {});
  EXPECT_TRUE(check(schedule, problem, graph, {}));
  schedule.programs[1].steps[1].sources[1].after = kNoStep;
  const auto checked = check(schedule, problem, graph, {});
  ASSERT_FALSE(checked);
  EXPECT_THAT(checked.error(), HasSubstr("in place: rank 1, step 1, chunk 0: writes"));
}

TEST(Origins, tell_sets_apart_with_and_without_a_list) {
  for (const bool is_listed : {false, true}) {
    const auto of = [&](const std::vector<Origin>& all) {
      Origins origins;
      for (const Origin& one : all) {
        origins.append(Origins(one, is_listed));
      }
      return origins;
    };
    const Origins sound = of({{0, 16}, {1, 16}, {2, 16}});
    EXPECT_TRUE(sound.is_ascending());
    EXPECT_TRUE(sound.is_same_set(of({{2, 16}, {0, 16}, {1, 16}})));
    EXPECT_FALSE(of({{2, 16}, {0, 16}, {1, 16}}).is_ascending());
    EXPECT_FALSE(of({{0, 16}, {0, 16}}).is_ascending());
    EXPECT_FALSE(sound.is_same_set(of({{0, 16}, {1, 16}})));
    EXPECT_FALSE(sound.is_same_set(of({{0, 16}, {1, 16}, {1, 16}})));
    EXPECT_FALSE(sound.is_same_set(of({{0, 16}, {1, 16}, {3, 16}})));
    EXPECT_FALSE(sound.is_same_set(of({{0, 16}, {1, 20}, {2, 12}})));
    Origins shifted = of({{0, 4}, {1, 4}, {2, 4}});
    shifted.shift(12);
    EXPECT_EQ(shifted, sound);
  }
}

TEST(Happenings, go_back_along_what_is_waited_for) {
  // 0 <- 1 <- 3 <- 5 and 2 <- 4 <- 5
  const std::vector<std::vector<uint32_t>> waits = {{}, {0}, {}, {1, Happenings::kNone}, {2}, {3, 4}};
  Happenings happenings;
  for (uint32_t event = 0; event < waits.size(); ++event) {
    EXPECT_EQ(happenings.add(), event);
    for (const uint32_t earlier : waits[event]) {
      happenings.wait_for(earlier);
    }
  }
  EXPECT_TRUE(happenings.is_before(0, 5));
  EXPECT_TRUE(happenings.is_before(2, 5));
  EXPECT_TRUE(happenings.is_before(0, 3));
  EXPECT_FALSE(happenings.is_before(2, 3));
  EXPECT_FALSE(happenings.is_before(0, 4));
  EXPECT_FALSE(happenings.is_before(1, 2));
}

/// All small changes to a step, one at a time.
std::vector<Step> spoilt(const Step& step) {
  std::vector<Step> all;
  for (size_t index = 0; index < step.sources.size(); ++index) {
    if (step.sources.size() > 1) {
      all.push_back(step);
      all.back().sources.erase(all.back().sources.begin() + static_cast<std::ptrdiff_t>(index));
    }
    all.push_back(step);
    all.back().sources.push_back(step.sources[index]);
    all.push_back(step);
    all.back().sources[index].offset += step.sources[index].kind == Source::Kind::local ? 4u : 0u;
    all.back().sources[index].transfer += step.sources[index].kind == Source::Kind::transfer ? 1u : 0u;
  }
  for (size_t index = 0; index < step.targets.size(); ++index) {
    all.push_back(step);
    all.back().targets.erase(all.back().targets.begin() + static_cast<std::ptrdiff_t>(index));
    all.push_back(step);
    all.back().targets[index].offset += step.targets[index].kind == Target::Kind::local ? 4u : 0u;
    all.back().targets[index].transfer += step.targets[index].kind == Target::Kind::transfer ? 1u : 0u;
  }
  return all;
}

TEST(Check, refuses_every_small_change_of_every_schedule) {
  const fabric::Graph graph = fabric::ring(5);
  const Topology topology(graph);
  const Limits limits{64};
  uint32_t n_refused = 0;
  for (const Operation operation : kOperations) {
    const Problem problem = problem_of(operation, 5, operation == Operation::barrier ? 0 : 100, 4, 1);
    for (const std::string& name : candidates(problem, topology)) {
      Schedule schedule = build(name, problem, topology, limits);
      for (uint32_t rank = 0; rank < 5 && operation != Operation::barrier; ++rank) {
        for (Step& step : schedule.programs[rank].steps) {
          const Step sound = step;
          for (const Step& change : spoilt(sound)) {
            step = change;
            EXPECT_FALSE(check(schedule, problem, graph, limits))
                << name << ", " << text_of(problem) << ", rank " << rank << ", step "
                << &step - schedule.programs[rank].steps.data();
            ++n_refused;
          }
          step = sound;
        }
      }
      EXPECT_TRUE(check(schedule, problem, graph, limits)) << name;
    }
  }
  EXPECT_GT(n_refused, 1000u);
}

}  // namespace
}  // namespace ringbolt::collective
