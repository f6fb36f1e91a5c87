#include "fabric/agreement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <deque>
#include <map>
#include <random>
#include <vector>

namespace ringbolt::fabric {
namespace {

using Kind = Agreement::Kind;
using Message = Agreement::Message;
using Sent = std::vector<std::pair<uint32_t, Message>>;

constexpr RankSet first_ranks(uint32_t n) { return n == 64 ? ~RankSet{0} : set_of(n) - 1; }

TEST(Agreement, of_three_excludes_a_dead_one) {
  Agreement a(0, 0b111);
  Agreement b(1, 0b111);
  const auto suspected = a.suspect(0b100);
  EXPECT_EQ(suspected.messages, (Sent{{1, {Kind::vote, 1, 0b100}}}));
  EXPECT_TRUE(suspected.decisions.empty());
  const auto answered = b.receive(0, suspected.messages[0].second);
  // It votes, and with its vote all whom it trusts say the same.
  EXPECT_EQ(answered.messages,
            (Sent{{0, {Kind::vote, 1, 0b100}}, {0, {Kind::commit, 1, 0b100}}, {2, {Kind::commit, 1, 0b100}}}));
  EXPECT_EQ(answered.decisions, (std::vector<Agreement::Decision>{{1, 0b100}}));
  EXPECT_EQ(b.members(), RankSet{0b011});
  EXPECT_EQ(b.epoch(), 2U);
  const auto decided = a.receive(1, answered.messages[0].second);
  EXPECT_EQ(decided.decisions, (std::vector<Agreement::Decision>{{1, 0b100}}));
  EXPECT_TRUE(a.receive(1, answered.messages[1].second).decisions.empty());  // of a past epoch
}

TEST(Agreement, excluded_rank_is_fenced) {
  Agreement c(2, 0b111);
  EXPECT_TRUE(c.receive(0, {Kind::vote, 1, 0b100}).messages.empty());  // a vote that contains oneself
  EXPECT_TRUE(c.receive(0, {Kind::commit, 1, 0b100}).is_fenced);
  EXPECT_TRUE(c.suspect(0b001).messages.empty());
  EXPECT_TRUE(c.is_fenced());
}

TEST(Agreement, one_who_is_given_up_is_believed_only_that_oneself_is_excluded) {
  Agreement a(0, 0b1111);
  a.suspect(0b0010);
  EXPECT_TRUE(a.receive(1, {Kind::vote, 1, 0b1000}).messages.empty());
  EXPECT_TRUE(a.receive(1, {Kind::commit, 1, 0b1000}).decisions.empty());
  EXPECT_EQ(a.suspects(), RankSet{0b0010});
  EXPECT_TRUE(a.receive(1, {Kind::commit, 1, 0b0001}).is_fenced);
}

TEST(Agreement, one_who_has_decided_is_fenced_by_those_who_excluded_it_meanwhile) {
  Agreement a(0, 0b11111);
  a.suspect(0b10000);
  for (const uint32_t other : {1U, 2U, 3U}) {
    a.receive(other, {Kind::vote, 1, 0b10000});
  }
  ASSERT_EQ(a.epoch(), 2U);
  EXPECT_TRUE(a.receive(1, {Kind::commit, 1, 0b10001}).is_fenced);
}

TEST(Agreement, voter_of_a_past_epoch_gets_its_decision) {
  Agreement a(0, 0b111);
  a.suspect(0b100);
  a.receive(1, {Kind::vote, 1, 0b100});
  ASSERT_EQ(a.epoch(), 2U);
  EXPECT_EQ(a.receive(2, {Kind::vote, 1, 0b010}).messages, (Sent{{2, {Kind::commit, 1, 0b100}}}));
  EXPECT_TRUE(a.receive(2, {Kind::vote, 0, 0b010}).messages.empty());
}

TEST(Agreement, messages_of_a_later_epoch_wait) {
  Agreement a(0, 0b11111);
  EXPECT_TRUE(a.receive(1, {Kind::vote, 2, 0b01000}).messages.empty());
  const auto output = a.receive(1, {Kind::commit, 1, 0b10000});
  EXPECT_EQ(a.epoch(), 2U);
  EXPECT_EQ(a.suspects(), RankSet{0b01000});
  EXPECT_EQ(output.messages.back(), (Sent::value_type{2, {Kind::vote, 2, 0b01000}}));
}

TEST(Agreement, quorum_is_more_than_half_or_half_with_the_lowest) {
  const Agreement four(1, 0b11110);
  EXPECT_TRUE(four.is_quorum(0b00110));
  EXPECT_FALSE(four.is_quorum(0b11000));
  EXPECT_TRUE(four.is_quorum(0b11100));
  const Agreement five(0, 0b11111);
  EXPECT_FALSE(five.is_quorum(0b00011));
  EXPECT_TRUE(five.is_quorum(0b11100));
  EXPECT_TRUE(Agreement(63, ~RankSet{0}).is_quorum(first_ranks(32)));
  EXPECT_FALSE(Agreement(63, ~RankSet{0}).is_quorum(~first_ranks(32)));
}

TEST(Agreement, without_quorum_nobody_decides_unless_all_is_certain) {
  Agreement b(1, 0b11);
  EXPECT_TRUE(b.suspect(0b01).decisions.empty());
  Agreement certain(1, 0b11, {.needs_majority = false});
  EXPECT_EQ(certain.suspect(0b01).decisions, (std::vector<Agreement::Decision>{{1, 0b01}}));
}

TEST(Agreement, of_those_whose_processes_have_ended_no_majority_needs_any) {
  Agreement c(2, 0b111);
  EXPECT_TRUE(c.suspect(0b011).decisions.empty());
  EXPECT_TRUE(c.suspect_certainly(0b001).decisions.size() == 0);  // rank 1 may go on elsewhere
  EXPECT_EQ(c.suspect_certainly(0b010).decisions, (std::vector<Agreement::Decision>{{1, 0b011}}));
}

TEST(Agreement, two_parts_after_a_certain_death_don_t_both_decide) {
  Agreement a(0, 0b111);
  Agreement c(2, 0b111);
  a.suspect_certainly(0b010);
  c.suspect_certainly(0b010);
  EXPECT_EQ(a.suspect(0b100).decisions, (std::vector<Agreement::Decision>{{1, 0b110}}));
  EXPECT_TRUE(c.suspect(0b001).decisions.empty());
}

TEST(Agreement, all_can_agree_that_nobody_has_failed) {
  Agreement a(0, 0b11);
  Agreement b(1, 0b11);
  const auto opened = a.open();
  EXPECT_EQ(opened.messages, (Sent{{1, {Kind::vote, 1, 0}}}));
  EXPECT_TRUE(b.receive(0, opened.messages[0].second).decisions.empty());  // b has not opened
  const auto answered = b.open();
  EXPECT_EQ(answered.decisions, (std::vector<Agreement::Decision>{{1, 0}}));
  EXPECT_EQ(a.receive(1, answered.messages[0].second).decisions, (std::vector<Agreement::Decision>{{1, 0}}));
  EXPECT_EQ(a.members(), RankSet{0b11});
  EXPECT_EQ(a.epoch(), 2U);
}

TEST(Agreement, commit_of_nobody_counts_where_it_is_open) {
  Agreement a(0, 0b111);
  EXPECT_TRUE(a.receive(1, {Kind::commit, 1, 0}).decisions.empty());
  a.open();
  EXPECT_EQ(a.receive(1, {Kind::commit, 1, 0}).decisions, (std::vector<Agreement::Decision>{{1, 0}}));
}

TEST(Agreement, foolish_input_does_nothing) {
  Agreement a(0, 0b0111);
  EXPECT_TRUE(a.suspect(0b1001).messages.empty());                      // itself, and no member
  EXPECT_TRUE(a.receive(1, {Kind::vote, 1, 0b0010}).messages.empty());  // the voter itself
  EXPECT_TRUE(a.receive(1, {Kind::vote, 1, 0b1000}).messages.empty());  // no member
  EXPECT_TRUE(a.receive(3, {Kind::vote, 1, 0b0100}).messages.empty());  // from no member
  EXPECT_TRUE(a.receive(64, {Kind::vote, 1, 0b0100}).messages.empty());
  EXPECT_TRUE(a.receive(0, {Kind::vote, 1, 0b0100}).messages.empty());
  EXPECT_TRUE(a.receive(1, {Kind::commit, 1, 0}).decisions.empty());
  EXPECT_EQ(a.epoch(), 1U);
}

TEST(Agreement, messages_have_their_golden_bytes) {
  const Message message{Kind::commit, 0x01020304, 0x1122334455667788};
  const auto bytes = emit(message);
  const std::array<uint8_t, kAgreementBytes> golden = {2,    0,    0,    0,    4,    3,    2,    1,
                                                       0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11};
  EXPECT_TRUE(std::ranges::equal(bytes, std::as_bytes(std::span(golden))));
  EXPECT_EQ(parse_agreement(bytes).value(), message);
  EXPECT_FALSE(parse_agreement(std::span(bytes).first(15)));
  auto bad = bytes;
  bad[0] = std::byte{3};
  EXPECT_FALSE(parse_agreement(bad));
  bad = bytes;
  bad[2] = std::byte{1};
  EXPECT_FALSE(parse_agreement(bad));
}

/// Ranks with first-in-first-out links of random speed, some of which crash, in the middle of a step too, and some of
/// which are suspected although they live.
class Network {
 public:
  struct Plan {
    bool has_false_suspicion = false;
    bool has_partition = false;
    Agreement::Rules rules = {};
  };

  Network(uint32_t seed, Plan plan)
      : random_(seed), n_(3 + below(6)), plan_(plan), decisions_(n_), is_crashed_(n_), is_leaving_(n_) {
    for (uint32_t rank = 0; rank < n_; ++rank) {
      nodes_.emplace_back(rank, first_ranks(n_), plan.rules);
    }
    for (uint32_t left = 1 + below(n_); left > 0; --left) {
      const uint32_t victim = below(n_);
      crash_at_[victim] = below(3 * n_);  // how many messages it still sends
      if (below(2) == 0) {
        crash(victim);
      }
    }
  }

  void run() {
    const uint32_t n_false = plan_.has_false_suspicion ? 1 + below(3) : 0;
    for (uint32_t i = 0; i < n_false; ++i) {
      to_suspect_.push_back({below(n_), below(n_)});
    }
    uint32_t until_cut = plan_.has_partition ? below(6 * n_) : UINT32_MAX;
    do {
      if (until_cut-- == 0) {
        cut();
      }
    } while (step() || until_cut < 6 * n_);
  }

  bool is_agreed() const {
    std::map<uint32_t, RankSet> decided;
    for (uint32_t rank = 0; rank < n_; ++rank) {
      // Across a cut nobody can be told that it is excluded: there only those count who think that they can go on.
      if (!goes_on(rank) || (plan_.has_partition && nodes_[rank].suspects() != 0)) {
        continue;
      }
      for (const auto& decision : decisions_[rank]) {
        if (decided.emplace(decision.epoch, decision.failed).first->second != decision.failed) {
          return false;
        }
      }
    }
    return true;
  }

  /// Those furthest behind have decided, or too few live whom no survivor suspects. (Those ahead wait for them: a false
  /// suspicion that comes between a vote and the decision can keep a rank, and with too many of them the group, back.)
  bool is_terminated() const {
    RankSet suspected = 0;
    RankSet alive = 0;
    uint32_t least = UINT32_MAX;
    for (uint32_t rank = 0; rank < n_; ++rank) {
      if (goes_on(rank)) {
        alive |= set_of(rank);
        suspected |= nodes_[rank].suspects();
        least = std::min(least, nodes_[rank].epoch());
      }
    }
    for (uint32_t rank = 0; rank < n_; ++rank) {
      const bool is_behind = goes_on(rank) && nodes_[rank].epoch() == least && suspected != 0;
      if (is_behind && (!plan_.rules.needs_majority || nodes_[rank].is_quorum(alive & ~suspected))) {
        return false;
      }
    }
    return true;
  }

  bool has_decided() const {
    return std::ranges::any_of(decisions_, [](const auto& decisions) { return !decisions.empty(); });
  }

 private:
  struct Suspicion {
    uint32_t by = 0;
    uint32_t of = 0;
  };

  uint32_t below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }

  bool goes_on(uint32_t rank) const { return !is_crashed_[rank] && !nodes_[rank].is_fenced(); }

  /// From here on nothing passes between two sides, which suspect each other.
  void cut() {
    side_ = 1 + below((1U << n_) - 2);
    for (auto& [link, messages] : links_) {
      if (is_cut(link.first, link.second)) {
        messages.clear();
      }
    }
    for (uint32_t a = 0; a < n_; ++a) {
      for (uint32_t b = 0; b < n_; ++b) {
        if (is_cut(a, b)) {
          to_suspect_.push_back({a, b});
        }
      }
    }
  }
  bool is_cut(uint32_t a, uint32_t b) const { return side_ != 0 && ((side_ >> a) & 1) != ((side_ >> b) & 1); }

  void crash(uint32_t rank) {
    if (is_crashed_[rank]) {
      return;
    }
    is_crashed_[rank] = true;
    suspected_by_all(rank);
  }

  /// Its connections close, and sooner or later everybody knows.
  void suspected_by_all(uint32_t rank) {
    for (uint32_t other = 0; other < n_; ++other) {
      to_suspect_.push_back({other, rank});
    }
  }

  void apply(uint32_t rank, const Agreement::Output& output) {
    decisions_[rank].insert(decisions_[rank].end(), output.decisions.begin(), output.decisions.end());
    for (const auto& [to, message] : output.messages) {
      const auto crash_at = crash_at_.find(rank);
      if (crash_at != crash_at_.end() && crash_at->second-- == 0) {
        crash(rank);
        return;
      }
      if (!is_cut(rank, to)) {
        links_[{rank, to}].push_back(message);
      }
    }
    if (output.is_fenced && !is_leaving_[rank]) {
      is_leaving_[rank] = true;
      suspected_by_all(rank);
    }
  }

  bool step() {
    std::vector<std::pair<uint32_t, uint32_t>> ready;
    for (const auto& [link, messages] : links_) {
      if (!messages.empty()) {
        ready.push_back(link);
      }
    }
    const auto n_choices = static_cast<uint32_t>(ready.size() + to_suspect_.size());
    if (n_choices == 0) {
      return false;
    }
    const uint32_t choice = below(n_choices);
    if (choice < ready.size()) {
      const auto [from, to] = ready[choice];
      const Message message = links_[ready[choice]].front();
      links_[ready[choice]].pop_front();
      if (!is_crashed_[to]) {
        apply(to, nodes_[to].receive(from, message));
      }
      return true;
    }
    const Suspicion suspicion = to_suspect_[choice - ready.size()];
    to_suspect_.erase(to_suspect_.begin() + static_cast<std::ptrdiff_t>(choice - ready.size()));
    // A connection's end is seen after what came through it.
    const bool is_early = !links_[{suspicion.of, suspicion.by}].empty() && is_crashed_[suspicion.of];
    if (is_early) {
      to_suspect_.push_back(suspicion);
    } else if (!is_crashed_[suspicion.by]) {
      apply(suspicion.by, nodes_[suspicion.by].suspect(set_of(suspicion.of)));
    }
    return true;
  }

  std::mt19937 random_;
  const uint32_t n_;
  const Plan plan_;
  std::vector<Agreement> nodes_;
  std::vector<std::vector<Agreement::Decision>> decisions_;
  std::vector<bool> is_crashed_;
  std::vector<bool> is_leaving_;
  std::map<uint32_t, uint32_t> crash_at_;
  std::map<std::pair<uint32_t, uint32_t>, std::deque<Message>> links_;
  std::vector<Suspicion> to_suspect_;
  RankSet side_ = 0;  ///< one side of the cut
};

struct Tally {
  uint32_t n_broken = 0;
  uint32_t n_stuck = 0;
  uint32_t n_decided = 0;
};

Tally run_all(uint32_t n_schedules, Network::Plan plan) {
  Tally tally;
  for (uint32_t seed = 0; seed < n_schedules; ++seed) {
    Network network(seed, plan);
    network.run();
    tally.n_broken += network.is_agreed() ? 0U : 1U;
    tally.n_stuck += network.is_terminated() ? 0U : 1U;
    tally.n_decided += network.has_decided() ? 1U : 0U;
    if (!network.is_agreed() && plan.rules.needs_majority && plan.rules.tells_excluded) {
      ADD_FAILURE() << "schedule " << seed << " breaks the agreement";
    }
  }
  return tally;
}

constexpr uint32_t kSchedules = 2000;

TEST(AgreementSchedules, crashes_alone) {
  const Tally tally = run_all(kSchedules, {});
  EXPECT_EQ(tally.n_broken, 0U);
  EXPECT_EQ(tally.n_stuck, 0U);
  EXPECT_GT(tally.n_decided, kSchedules / 2);
}

TEST(AgreementSchedules, crashes_that_are_certain_need_no_majority) {
  const Tally tally = run_all(kSchedules, {.has_false_suspicion = false, .rules = {.needs_majority = false}});
  EXPECT_EQ(tally.n_broken, 0U);
  EXPECT_EQ(tally.n_stuck, 0U);
}

TEST(AgreementSchedules, crashes_and_false_suspicion) {
  const Tally tally = run_all(kSchedules, {.has_false_suspicion = true});
  EXPECT_EQ(tally.n_broken, 0U);
  EXPECT_EQ(tally.n_stuck, 0U);
  EXPECT_GT(tally.n_decided, kSchedules / 2);
}

TEST(AgreementSchedules, crashes_and_partitions) {
  const Tally tally = run_all(kSchedules, {.has_false_suspicion = true, .has_partition = true});
  EXPECT_EQ(tally.n_broken, 0U);
}

// The two rules that false suspicion makes necessary: without either, the same schedules break.
TEST(AgreementSchedules, partitions_break_it_without_majority) {
  const Tally tally = run_all(kSchedules, {.has_partition = true, .rules = {.needs_majority = false}});
  EXPECT_GT(tally.n_broken, 0U);
  std::printf("broken %u of %u\n", tally.n_broken, kSchedules);
}

TEST(AgreementSchedules, false_suspicion_breaks_it_without_telling_the_excluded) {
  const Tally tally = run_all(kSchedules, {.has_false_suspicion = true, .rules = {.tells_excluded = false}});
  EXPECT_GT(tally.n_broken, 0U);
  std::printf("broken %u of %u\n", tally.n_broken, kSchedules);
}

}  // namespace
}  // namespace ringbolt::fabric
