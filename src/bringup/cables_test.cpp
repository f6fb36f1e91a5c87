#include "bringup/cables.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>
#include <set>

#include "bringup/gid_test_support.h"

namespace ringbolt::bringup {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

PortCard card(const std::string& device, const std::string& address, uint32_t rate_mbps = 40000) {
  return {.device = device, .rate_mbps = rate_mbps, .gid_index = 1, .gids = {{1, test::gid(address)}}};
}

/// "0:en2-1:en3", in the order of the result.
std::vector<std::string> texts(const AllCards& cards, const Cables& cables) {
  std::vector<std::string> list;
  for (const Cable& one : cables.cables) {
    list.push_back(std::to_string(one.a.rank) + ":" + cards[one.a.rank][one.a.port].device + "-" +
                   std::to_string(one.b.rank) + ":" + cards[one.b.rank][one.b.port].device);
  }
  return list;
}

/// Trials that succeeded at both ends.
std::vector<TrialSuccess> mutual(const std::vector<std::pair<PortOfRank, PortOfRank>>& pairs) {
  std::vector<TrialSuccess> trials;
  for (const auto& [a, b] : pairs) {
    trials.push_back({a, b});
    trials.push_back({b, a});
  }
  return trials;
}

Evidence tried(std::vector<TrialSuccess> trials, DeviceMatrix matrix = {}) {
  return {.matrix = std::move(matrix), .are_trials_made = true, .trials = std::move(trials)};
}

/// Two ranks with two ports each, whose addresses say nothing.
AllCards two_by_two() {
  return {{card("en2", "127.77.0.2"), card("en3", "127.77.0.3")},
          {card("en2", "127.77.1.2"), card("en3", "127.77.1.3")}};
}

TEST(Cables, are_found_by_their_subnets) {
  const AllCards cards = {{card("en2", "10.77.0.1"), card("en3", "10.77.2.2", 80000)},
                          {card("en2", "10.77.1.1"), card("en3", "10.77.0.2", 10000)},
                          {card("en2", "10.77.1.2"), card("en4", "10.77.2.1", 0)}};
  const Cables cables = match_cables(cards, {});
  EXPECT_THAT(texts(cards, cables), ElementsAre("0:en2-1:en3", "0:en3-2:en4", "1:en2-2:en2"));
  EXPECT_EQ(cables.cables[0].rate_mbps, 10000U);  // the slower end
  EXPECT_EQ(cables.cables[1].rate_mbps, 80000U);  // the known end
  EXPECT_EQ(cables.cables[0].known_by, KnownBy::kSubnet);
  EXPECT_THAT(cables.unmatched, IsEmpty());
  EXPECT_THAT(cables.conflicts, IsEmpty());
  EXPECT_THAT(trial_pairs(cards, {}, 0), IsEmpty());
}

TEST(Cables, use_the_addresses_that_they_were_found_by) {
  AllCards cards = {{card("en2", "169.254.3.3")}, {card("en2", "169.254.9.9")}};
  cards[0][0].gids = {{1, test::gid("169.254.3.3")}, {4, test::gid("fd00::1")}};
  cards[1][0].gids = {{1, test::gid("169.254.9.9")}, {7, test::gid("fd00::2")}};
  const Cables cables = match_cables(cards, {});
  ASSERT_EQ(cables.cables.size(), 1U);
  EXPECT_EQ(cables.cables[0].gid_index_a, 4);
  EXPECT_EQ(cables.cables[0].gid_index_b, 7);
}

TEST(Cables, with_both_families_are_one_and_use_ipv4) {
  AllCards cards = {{card("en2", "10.0.0.1")}, {card("en2", "10.0.0.2")}};
  cards[0][0].gids.push_back({2, test::gid("fd00::1")});
  cards[1][0].gids.push_back({2, test::gid("fd00::2")});
  const Cables cables = match_cables(cards, {});
  ASSERT_EQ(cables.cables.size(), 1U);
  EXPECT_EQ(cables.cables[0].gid_index_a, 1);
  EXPECT_EQ(cables.cables[0].gid_index_b, 1);
}

TEST(Cables, between_the_same_ranks_are_rails) {
  const AllCards cards = {{card("en2", "10.77.0.1"), card("en3", "10.77.1.1")},
                          {card("en2", "10.77.1.2"), card("en3", "10.77.0.2")}};  // crossed, by position
  EXPECT_THAT(texts(cards, match_cables(cards, {})), ElementsAre("0:en2-1:en3", "0:en3-1:en2"));
}

TEST(Cables, three_ports_in_a_subnet_are_an_error_that_names_them) {
  const AllCards cards = {{card("en2", "10.0.0.1")}, {card("en2", "10.0.0.2")}, {card("en5", "10.0.0.3")}};
  const Cables cables = match_cables(cards, {});
  EXPECT_THAT(cables.cables, IsEmpty());
  ASSERT_EQ(cables.conflicts.size(), 1U);
  EXPECT_THAT(cables.conflicts[0], AllOf(HasSubstr("rank 0's en2 (10.0.0.1)"), HasSubstr("rank 1's en2 (10.0.0.2)"),
                                         HasSubstr("rank 2's en5 (10.0.0.3)"), HasSubstr("device matrix")));
  ASSERT_EQ(cables.unmatched.size(), 3U);
  EXPECT_THAT(cables.unmatched[0].reason, HasSubstr("more than two"));
  EXPECT_THAT(trial_pairs(cards, {}, 0), IsEmpty());  // a trial would succeed with each
}

TEST(Cables, port_in_the_subnets_of_two_others_is_an_error) {
  AllCards cards = {{card("en2", "10.0.0.1")}, {card("en2", "10.0.0.2")}, {card("en2", "10.0.1.2")}};
  cards[0][0].gids.push_back({2, test::gid("10.0.1.1")});
  const Cables cables = match_cables(cards, {});
  EXPECT_THAT(cables.cables, IsEmpty());
  EXPECT_THAT(cables.conflicts, ElementsAre(HasSubstr("a cable has one other end")));
}

TEST(Cables, equal_addresses_are_no_cable) {
  const AllCards cards = {{card("lo", "10.0.0.1")}, {card("lo", "10.0.0.1")}};
  const Cables cables = match_cables(cards, {});
  EXPECT_THAT(cables.cables, IsEmpty());
  EXPECT_THAT(cables.unmatched[0].reason, HasSubstr("rank 1's lo has the same address, 10.0.0.1"));
}

TEST(Cables, are_found_by_trials_at_both_ends) {
  const AllCards cards = two_by_two();
  EXPECT_THAT(match_cables(cards, {}).cables, IsEmpty());
  EXPECT_THAT(match_cables(cards, {}).unmatched[0].reason, HasSubstr("nobody has tried yet"));
  EXPECT_EQ(trial_pairs(cards, {}, 0).size(), 4U);
  const Cables cables = match_cables(cards, tried(mutual({{{0, 0}, {1, 1}}, {{0, 1}, {1, 0}}})));
  EXPECT_THAT(texts(cards, cables), ElementsAre("0:en2-1:en3", "0:en3-1:en2"));
  EXPECT_EQ(cables.cables[0].known_by, KnownBy::kTrial);
  EXPECT_THAT(cables.conflicts, IsEmpty());
}

TEST(Cables, subnets_leave_the_rest_to_trials) {
  AllCards cards = two_by_two();
  cards[0][0] = card("en2", "10.0.0.1");
  cards[1][1] = card("en3", "10.0.0.2");
  EXPECT_THAT(trial_pairs(cards, {}, 1), ElementsAre(TrialSuccess{{1, 0}, {0, 1}}));
  const Cables cables = match_cables(cards, tried(mutual({{{0, 1}, {1, 0}}})));
  EXPECT_THAT(texts(cards, cables), ElementsAre("0:en2-1:en3", "0:en3-1:en2"));
}

TEST(Cables, success_at_one_end_is_reported_and_not_used) {
  const AllCards cards = two_by_two();
  auto trials = mutual({{{0, 0}, {1, 0}}});
  trials.push_back({{0, 1}, {1, 1}});
  const Cables cables = match_cables(cards, tried(trials));
  EXPECT_THAT(texts(cards, cables), ElementsAre("0:en2-1:en2"));
  EXPECT_THAT(cables.conflicts, ElementsAre(HasSubstr("rank 0's en3 reaches rank 1's en3, but not the other way")));
  EXPECT_EQ(cables.unmatched.size(), 2U);
}

TEST(Cables, success_at_one_end_says_nothing_of_ports_with_a_cable) {
  const AllCards cards = two_by_two();
  auto trials = mutual({{{0, 0}, {1, 0}}, {{0, 1}, {1, 1}}});
  trials.push_back({{0, 0}, {1, 1}});  // by a route through another port
  const Cables cables = match_cables(cards, tried(trials));
  EXPECT_THAT(texts(cards, cables), ElementsAre("0:en2-1:en2", "0:en3-1:en3"));
  EXPECT_THAT(cables.conflicts, IsEmpty());
}

TEST(Cables, port_that_reaches_several_is_at_a_switch) {
  const AllCards cards = {{card("a", "127.0.0.1")}, {card("b", "127.0.0.2")}, {card("c", "127.0.0.3")}};
  const Cables cables = match_cables(cards, tried(mutual({{{0, 0}, {1, 0}}, {{0, 0}, {2, 0}}})));
  EXPECT_THAT(cables.cables, IsEmpty());
  EXPECT_THAT(cables.conflicts,
              ElementsAre(AllOf(HasSubstr("rank 0's a reaches each of rank 1's b"), HasSubstr("switch"))));
  EXPECT_THAT(cables.unmatched[1].reason, HasSubstr("rank 0's a reaches others too"));
}

TEST(Cables, own_loopback_does_not_count) {
  const AllCards cards = two_by_two();
  const Cables cables = match_cables(cards, tried(mutual({{{0, 0}, {0, 1}}, {{1, 0}, {1, 0}}})));
  EXPECT_THAT(cables.cables, IsEmpty());
  EXPECT_THAT(cables.conflicts, IsEmpty());
  for (const TrialSuccess& one : trial_pairs(cards, {}, 0)) {
    EXPECT_EQ(one.from.rank, 0U);
    EXPECT_EQ(one.to.rank, 1U);
  }
}

TEST(Cables, port_that_nobody_answers_is_left_with_its_reason) {
  const AllCards cards = two_by_two();
  const Cables cables = match_cables(cards, tried(mutual({{{0, 0}, {1, 0}}})));
  ASSERT_EQ(cables.unmatched.size(), 2U);
  EXPECT_EQ(cables.unmatched[0].port, (PortOfRank{0, 1}));
  EXPECT_THAT(cables.unmatched[0].reason, HasSubstr("no port of another rank answers"));
}

TEST(Cables, trials_of_ports_that_there_are_not_are_ignored) {
  const AllCards cards = two_by_two();
  EXPECT_THAT(match_cables(cards, tried(mutual({{{0, 0}, {7, 0}}, {{0, 9}, {1, 0}}}))).cables, IsEmpty());
}

TEST(Cables, of_no_ranks_or_ports_are_none) {
  EXPECT_THAT(match_cables({}, {}).cables, IsEmpty());
  EXPECT_THAT(match_cables({{}, {}}, {}).unmatched, IsEmpty());
  EXPECT_THAT(match_cables({{card("en2", "10.0.0.1")}}, {}).cables, IsEmpty());
}

TEST(DeviceMatrix, decides_where_each_cell_names_one_device) {
  const AllCards cards = two_by_two();
  const Evidence evidence{.matrix = {{{}, {"en3"}}, {{"en2"}, {}}}};
  const Cables cables = match_cables(cards, evidence);
  EXPECT_THAT(texts(cards, cables), ElementsAre("0:en3-1:en2"));
  EXPECT_EQ(cables.cables[0].known_by, KnownBy::kMatrix);
  EXPECT_THAT(cables.unmatched[0].reason, HasSubstr("the device matrix does not name it"));
  EXPECT_THAT(trial_pairs(cards, evidence, 0), IsEmpty());
}

TEST(DeviceMatrix, wins_over_subnets) {
  const AllCards cards = {{card("en2", "10.0.0.1"), card("en3", "10.0.1.1")},
                          {card("en2", "10.0.0.2"), card("en3", "10.0.1.2")}};
  const Evidence evidence{.matrix = {{{}, {"en2"}}, {{"en3"}, {}}}};
  EXPECT_THAT(texts(cards, match_cables(cards, evidence)), ElementsAre("0:en2-1:en3"));
}

TEST(DeviceMatrix, may_use_one_device_towards_all) {
  const AllCards cards = {{card("lo", "10.0.0.1")}, {card("lo", "10.0.0.2")}, {card("lo", "10.0.0.3")}};
  const Evidence evidence{.matrix = {{{}, {"lo"}, {"lo"}}, {{"lo"}, {}, {"lo"}}, {{"lo"}, {"lo"}, {}}}};
  const Cables cables = match_cables(cards, evidence);
  EXPECT_THAT(texts(cards, cables), ElementsAre("0:lo-1:lo", "0:lo-2:lo", "1:lo-2:lo"));
  EXPECT_THAT(cables.conflicts, IsEmpty());
}

/// Lists say which devices lead there; which two belong together is never read off their order.
TEST(DeviceMatrix, of_rails_in_any_order_is_paired_by_evidence) {
  const DeviceMatrix permuted = {{{}, {"en3", "en2"}}, {{"en2", "en3"}, {}}};
  const AllCards by_subnet = {{card("en2", "10.0.0.1"), card("en3", "10.0.1.1")},
                              {card("en2", "10.0.0.2"), card("en3", "10.0.1.2")}};
  EXPECT_THAT(texts(by_subnet, match_cables(by_subnet, {.matrix = permuted})),
              ElementsAre("0:en2-1:en2", "0:en3-1:en3"));
  const AllCards by_trial = two_by_two();
  EXPECT_EQ(trial_pairs(by_trial, {.matrix = permuted}, 0).size(), 4U);
  EXPECT_THAT(match_cables(by_trial, {.matrix = permuted}).cables, IsEmpty());
  const auto trials = mutual({{{0, 0}, {1, 0}}, {{0, 1}, {1, 1}}});
  EXPECT_THAT(texts(by_trial, match_cables(by_trial, tried(trials, permuted))),
              ElementsAre("0:en2-1:en2", "0:en3-1:en3"));
}

TEST(DeviceMatrix, of_rails_that_all_reach_all_is_paired_in_order) {
  const AllCards cards = two_by_two();
  const auto all = mutual({{{0, 0}, {1, 0}}, {{0, 0}, {1, 1}}, {{0, 1}, {1, 0}}, {{0, 1}, {1, 1}}});
  const Cables cables = match_cables(cards, tried(all, {{{}, {"en3", "en2"}}, {{"en2", "en3"}, {}}}));
  EXPECT_THAT(texts(cards, cables), ElementsAre("0:en2-1:en3", "0:en3-1:en2"));
  EXPECT_THAT(cables.conflicts, IsEmpty());
  EXPECT_EQ(match_cables(cards, tried(all)).conflicts.size(), 4U);  // nobody has said which
}

TEST(DeviceMatrix, of_uneven_rails_leaves_one_over) {
  const AllCards cards = two_by_two();
  const DeviceMatrix matrix = {{{}, {"en2", "en3"}}, {{"en3"}, {}}};
  const Cables cables = match_cables(cards, tried(mutual({{{0, 1}, {1, 1}}}), matrix));
  EXPECT_THAT(texts(cards, cables), ElementsAre("0:en3-1:en3"));
  EXPECT_EQ(cables.unmatched.size(), 2U);
}

TEST(DeviceMatrix, that_is_wrong_is_refused_with_what_is_there) {
  const AllCards cards = two_by_two();
  const auto conflicts = [&](DeviceMatrix matrix) {
    return match_cables(cards, {.matrix = std::move(matrix)}).conflicts;
  };
  EXPECT_THAT(conflicts({{{}, {"en9"}}, {{"en2"}, {}}}),
              ElementsAre(HasSubstr("names en9 of rank 0 towards rank 1; usable there: en2, en3"),
                          HasSubstr("nothing the other way")));
  EXPECT_THAT(conflicts({{{}, {"en2"}}, {{}, {}}}), ElementsAre(HasSubstr("rank 0's en2 (127.77.0.2) towards rank 1")));
  EXPECT_THAT(conflicts({{{"en2"}, {}}, {{}, {}}}), ElementsAre(HasSubstr("of rank 0 towards rank 0")));
  EXPECT_THAT(conflicts({{{}, {}}}), ElementsAre(HasSubstr("not 2 rows of 2 cells")));
  EXPECT_THAT(conflicts({{{}}, {{}, {}}}), ElementsAre(HasSubstr("not 2 rows of 2 cells")));
}

/// The order of ports within a rank, and of the evidence, changes nothing but the numbers of the ports.
TEST(Cables, are_the_same_whatever_the_order_of_ports) {
  std::mt19937 random(7);
  AllCards cards;
  std::vector<std::pair<std::string, std::string>> ends;  // by address: both ends of cable c
  for (uint32_t rank = 0; rank < 6; ++rank) {
    cards.emplace_back();
    for (uint32_t other = 0; other < 6; ++other) {
      const uint32_t cable = std::min(rank, other) * 6 + std::max(rank, other);
      if (rank != other) {
        cards[rank].push_back(
            card("en" + std::to_string(other), "10.77." + std::to_string(cable) + (rank < other ? ".1" : ".2")));
      }
    }
  }
  const auto expected = texts(cards, match_cables(cards, {}));
  ASSERT_EQ(expected.size(), 15U);
  for (int round = 0; round < 50; ++round) {
    for (auto& ports : cards) {
      std::shuffle(ports.begin(), ports.end(), random);
    }
    ASSERT_EQ(texts(cards, match_cables(cards, {})), expected);
  }
}

}  // namespace
}  // namespace ringbolt::bringup
