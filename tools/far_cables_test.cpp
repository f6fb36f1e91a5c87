#include "far_cables.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "cluster/topology.h"

namespace ringbolt::tools {
namespace {

struct Figures {
  double gbps = 10;
  double latency_us = 20;
  double starved = 0;
  uint64_t bytes = 64U << 20U;
  uint32_t message_bytes = 1U << 20U;
};

class FarCables : public testing::Test {
 protected:
  static Direction direction(const cluster::Cluster& model, uint32_t cable, bool is_back, const Figures& figures) {
    Direction one;
    one.cable = cable;
    one.from = is_back ? model.cables[cable].b : model.cables[cable].a;
    one.to = is_back ? model.cables[cable].a : model.cables[cable].b;
    one.state = Direction::State::kMeasured;
    one.bandwidth_gbps = figures.gbps;
    one.verified_bytes = figures.bytes;
    one.message_bytes = figures.message_bytes;
    one.latency_us = figures.latency_us;
    one.starved_share = one.starved_latency_share = figures.starved;
    return one;
  }

  std::vector<Direction> cable(uint32_t index, const Figures& figures) const {
    return {direction(model_, index, false, figures), direction(model_, index, true, figures)};
  }

  /// Cables that are found far, when the first look gives `first` and every later one `later` (what is missing: usual).
  std::vector<uint32_t> far(const std::map<uint32_t, Figures>& first, const std::map<uint32_t, Figures>& later) {
    const auto look = [this](const std::map<uint32_t, Figures>& figures, uint32_t index) {
      const auto found = figures.find(index);
      return cable(index, found == figures.end() ? Figures{} : found->second);
    };
    directions_.clear();
    for (uint32_t index = 0; index < model_.cables.size(); ++index) {
      std::ranges::move(look(first, index), std::back_inserter(directions_));
    }
    n_looks_ = 0;
    judge_cables(model_, directions_, [&](uint32_t index) {
      ++n_looks_;
      return look(later, index);
    });
    std::vector<uint32_t> found;
    for (const Direction& one : directions_) {
      if (!one.far.empty() && (found.empty() || found.back() != one.cable)) {
        found.push_back(one.cable);
      }
    }
    return found;
  }

  void make(const char* topology, uint32_t rate_mbps, cluster::Kind kind) {
    model_ = *cluster::parse_topology(topology);
    model_.kind = kind;
    for (cluster::Cable& one : model_.cables) {
      one.rate_mbps = rate_mbps;
    }
  }

  cluster::Cluster model_ = *cluster::parse_topology("ring:4");
  std::vector<Direction> directions_;
  size_t n_looks_ = 0;
};

using Found = std::vector<uint32_t>;

TEST_F(FarCables, the_usual_is_not_measured_again) {
  EXPECT_EQ(far({}, {}), Found{});
  EXPECT_EQ(n_looks_, 0U);
}

TEST_F(FarCables, slow_among_like_ones) {
  const std::map<uint32_t, Figures> slow{{2, {1, 20}}};
  EXPECT_EQ(far(slow, slow), Found{2});
  EXPECT_EQ(directions_[4].far, "1.00 Gb/s, and like cables have 10.0 Gb/s");
  EXPECT_EQ(n_looks_, 6U);  // thrice, in turns with another
}

TEST_F(FarCables, late_among_like_ones) {
  const std::map<uint32_t, Figures> late{{1, {10, 2000}}};
  EXPECT_EQ(far(late, late), Found{1});
  EXPECT_EQ(directions_[2].far, "a latency of 2000 us, and like cables have 20.0 us");
  EXPECT_EQ(far({{1, {10, 110}}}, {{1, {10, 110}}}), Found{});  // a processor's whim
}

TEST_F(FarCables, one_good_look_clears) {
  EXPECT_EQ(far({{2, {1, 20}}}, {}), Found{});
  EXPECT_EQ(n_looks_, 2U);
}

TEST_F(FarCables, what_slows_all_at_the_second_look_clears) {
  const std::map<uint32_t, Figures> all{{0, {1, 20}}, {1, {1, 20}}, {2, {1, 20}}, {3, {1, 20}}};
  EXPECT_EQ(far({{2, {1, 20}}}, all), Found{});
}

TEST_F(FarCables, programs_that_waited_for_a_processor_prove_less) {
  const std::map<uint32_t, Figures> starved{{2, {2, 20, 0.5}}};
  EXPECT_EQ(far(starved, starved), Found{});
  const std::map<uint32_t, Figures> both{{2, {1, 20, 0.5}}};
  EXPECT_EQ(far(both, both), Found{2});
}

TEST_F(FarCables, other_speeds_are_not_like) {
  model_.cables[2].speed_gbps = 10;
  const std::map<uint32_t, Figures> slow{{2, {1, 20}}};
  EXPECT_EQ(far(slow, slow), Found{});
}

TEST_F(FarCables, two_cables_say_nothing_of_each_other) {
  make("line:3", 0, cluster::Kind::emulated);
  const std::map<uint32_t, Figures> slow{{1, {1, 20}}};
  EXPECT_EQ(far(slow, slow), Found{});
}

TEST_F(FarCables, below_half_of_what_is_stated_and_within_reach) {
  make("line:2", 2000, cluster::Kind::netns);
  EXPECT_EQ(far({{0, {0.13, 20}}}, {{0, {0.13, 20}}}), Found{0});
  EXPECT_EQ(directions_[0].far, "0.13 Gb/s, and its stated rate is 2.00 Gb/s");
  EXPECT_EQ(n_looks_, 3U);
  EXPECT_EQ(far({{0, {1.9, 20}}}, {}), Found{});
}

TEST_F(FarCables, below_half_of_what_is_stated_where_others_reach_it) {
  make("line:3", 2000, cluster::Kind::netns);
  const std::map<uint32_t, Figures> one{{0, {0.9, 20}}, {1, {1.9, 20}}};
  EXPECT_EQ(far(one, one), Found{0});
  const std::map<uint32_t, Figures> loaded{{0, {0.9, 20}}, {1, {1.0, 20}}};
  EXPECT_EQ(far(one, loaded), Found{});
}

TEST_F(FarCables, all_of_them_below_what_is_stated) {
  make("ring:3", 2000, cluster::Kind::netns);
  const std::map<uint32_t, Figures> all{{0, {0.13, 20}}, {1, {0.13, 20}}, {2, {0.13, 20}}};
  EXPECT_EQ(far(all, all), (Found{0, 1, 2}));
}

TEST_F(FarCables, what_the_machine_can_not_move_is_no_fault_of_cables) {
  make("ring:3", 40'000, cluster::Kind::netns);
  const std::map<uint32_t, Figures> all{{0, {5, 20}}, {1, {4, 20}}, {2, {6, 20}}};
  EXPECT_EQ(far(all, all), Found{});
  make("line:2", 40'000, cluster::Kind::netns);
  EXPECT_EQ(far({{0, {3, 20}}}, {{0, {3, 20}}}), Found{});
}

TEST_F(FarCables, speeds_count_between_machines) {
  make("line:3", 0, cluster::Kind::hosts);
  model_.cables[1].speed_gbps = 200;
  EXPECT_EQ(far({{1, {2, 20}}}, {{1, {2, 20}}}), Found{1});
}

TEST_F(FarCables, of_memory_only_what_it_surely_moves_is_awaited) {
  make("line:3", 0, cluster::Kind::emulated);
  EXPECT_EQ(far({{1, {0.6, 20}}}, {{1, {0.6, 20}}}), Found{});
  EXPECT_EQ(far({{1, {0.4, 20}}}, {{1, {0.4, 20}}}), Found{1});
  model_.cables[1].speed_gbps = 2;
  EXPECT_EQ(far({{1, {0.13, 20}}}, {{1, {0.13, 20}}}), Found{1});
  EXPECT_EQ(directions_[2].far, "0.13 Gb/s, and its stated rate is 2.00 Gb/s");
}

TEST_F(FarCables, late_answers_of_programs_that_waited_for_a_processor_prove_nothing) {
  const std::map<uint32_t, Figures> starved{{1, {10, 400, 1.1}}};
  EXPECT_EQ(far(starved, starved), Found{});
}

TEST_F(FarCables, a_few_bytes_are_no_rate) {
  const std::map<uint32_t, Figures> few{{1, {0.01, 20, 0, 340}}};
  EXPECT_EQ(far(few, few), Found{});
}

TEST_F(FarCables, short_messages_are_no_rate_but_have_a_latency) {
  const std::map<uint32_t, Figures> posting{{1, {0.01, 20, 0, 64U << 20U, 16383}}};
  EXPECT_EQ(far(posting, posting), Found{});
  const std::map<uint32_t, Figures> carrying{{1, {0.01, 20, 0, 64U << 20U, 16384}}};
  EXPECT_EQ(far(carrying, carrying), Found{1});
  const std::map<uint32_t, Figures> late{{1, {10, 2000, 0, 64, 16}}};
  EXPECT_EQ(far(late, late), Found{1});
}

TEST_F(FarCables, what_was_cut_or_failed_meanwhile_is_not_accused) {
  directions_ = cable(0, {});
  for (uint32_t index = 1; index < 4; ++index) {
    std::ranges::move(cable(index, {index == 3 ? 1.0 : 10.0, 20}), std::back_inserter(directions_));
  }
  directions_[2].state = Direction::State::kFailed;
  judge_cables(model_, directions_, [this](uint32_t index) {
    std::vector<Direction> both = cable(index, {1, 20});
    both[0].state = both[1].state = Direction::State::kCut;
    return both;
  });
  for (const Direction& one : directions_) {
    EXPECT_EQ(one.far, "");
  }
}

}  // namespace
}  // namespace ringbolt::tools
