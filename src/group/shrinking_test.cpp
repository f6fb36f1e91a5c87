#include "group/shrinking.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>

namespace ringbolt::group {
namespace {

using fabric::RankSet;

constexpr uint16_t kGroup = 3;

/// Ranks whose messages take their time, come twice and overtake each other.
class Ranks {
 public:
  Ranks(uint32_t n, uint32_t seed) : random_(seed), dead_(n) {
    for (uint32_t self = 0; self < n; ++self) {
      all.push_back(std::make_unique<Shrinking>(self, (RankSet{1} << n) - 1, kGroup,
                                                [this, self](uint32_t to, std::span<const std::byte> bytes) {
                                                  if (!dead_[self]) {
                                                    const Sent sent{self, to, {bytes.begin(), bytes.end()}};
                                                    under_way_.insert(under_way_.end(), 1 + random_() % 2, sent);
                                                  }
                                                }));
    }
  }
  void kill(uint32_t victim) {
    dead_[victim] = true;
    for (uint32_t rank = 0; rank < all.size(); ++rank) {
      if (!dead_[rank]) {
        all[rank]->suspect(victim, true);
      }
    }
  }
  bool is_dead(uint32_t rank) const { return dead_[rank]; }
  bool deliver_one() {
    if (under_way_.empty()) {
      return false;
    }
    const size_t at = random_() % under_way_.size();
    const Sent sent = under_way_[at];
    under_way_.erase(under_way_.begin() + static_cast<std::ptrdiff_t>(at));
    if (!dead_[sent.to]) {
      all[sent.to]->receive(sent.from, sent.bytes);
    }
    return true;
  }

  std::vector<std::unique_ptr<Shrinking>> all;

 private:
  struct Sent {
    uint32_t from = 0;
    uint32_t to = 0;
    std::vector<std::byte> bytes;
  };
  std::mt19937 random_;
  std::vector<bool> dead_;
  std::vector<Sent> under_way_;
};

// Its first vote had told the others another number than it took itself.
TEST(Shrinking, who_begins_again_with_a_later_number_gets_the_same_as_the_others) {
  Ranks ranks(3, 5);
  ranks.all[0]->begin(0, 0, 0x4000);
  while (ranks.deliver_one()) {
  }
  ranks.all[0]->begin(0, 0, 0x4042);
  for (const uint32_t rank : {1U, 2U}) {
    ranks.all[rank]->begin(0, 0, 0x4000);
  }
  while (ranks.deliver_one()) {
  }
  const auto first = ranks.all[0]->take_outcome();
  ASSERT_TRUE(first);
  for (const uint32_t rank : {1U, 2U}) {
    const auto outcome = ranks.all[rank]->take_outcome();
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->id, first->id);
  }
}

TEST(Shrinking, all_get_the_same_members_and_a_number_beyond_all_of_theirs) {
  Ranks ranks(4, 1);
  for (const uint32_t rank : {0U, 1U, 3U}) {
    ranks.all[rank]->begin(0b0100, 0b0100, static_cast<uint16_t>(5 + rank));
  }
  while (ranks.deliver_one()) {
  }
  for (const uint32_t rank : {0U, 1U, 3U}) {
    const auto outcome = ranks.all[rank]->take_outcome();
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->members, RankSet{0b1011});
    EXPECT_EQ(outcome->id, 64 + kGroup);  // of no other group that is shrunk at the same time
    EXPECT_FALSE(ranks.all[rank]->take_outcome());
  }
}

TEST(Shrinking, waits_for_those_who_have_not_begun) {
  Ranks ranks(2, 2);
  ranks.all[0]->begin(0, 0, 1);
  while (ranks.deliver_one()) {
  }
  EXPECT_FALSE(ranks.all[0]->take_outcome());
  ranks.all[1]->begin(0, 0, 3);
  while (ranks.deliver_one()) {
  }
  EXPECT_EQ(ranks.all[0]->take_outcome()->id, 3);
  EXPECT_EQ(ranks.all[1]->take_outcome()->members, RankSet{0b11});
}

TEST(Shrinking, foolish_bytes_do_nothing) {
  Ranks ranks(2, 3);
  ranks.all[0]->begin(0, 0, 1);
  std::vector<std::byte> bytes(kShrinkingBytes, std::byte{0xff});
  ranks.all[0]->receive(1, bytes);
  ranks.all[0]->receive(64, bytes);
  ranks.all[0]->receive(1, {});
  EXPECT_FALSE(ranks.all[0]->take_outcome());
  EXPECT_FALSE(ranks.all[0]->is_fenced());
}

TEST(Shrinking, survivors_agree_whoever_dies_meanwhile) {
  for (uint32_t seed = 0; seed < 1000; ++seed) {
    std::mt19937 random(seed);
    const uint32_t n = 2 + seed % 6;
    Ranks ranks(n, seed);
    for (uint32_t rank = 0; rank < n; ++rank) {
      ranks.all[rank]->begin(0, 0, static_cast<uint16_t>(random() % 50));
      if (random() % 3 == 0) {
        ranks.deliver_one();
      }
    }
    for (uint32_t n_killed = 0; n_killed + 1 < n; ++n_killed) {
      for (uint64_t step = random() % (2 * n * n); step > 0; --step) {
        ranks.deliver_one();
      }
      if (const auto victim = static_cast<uint32_t>(random() % n); !ranks.is_dead(victim)) {
        ranks.kill(victim);
      }
    }
    while (ranks.deliver_one()) {
    }
    std::optional<Shrinking::Outcome> first;
    for (uint32_t rank = 0; rank < n; ++rank) {
      if (ranks.is_dead(rank)) {
        continue;
      }
      const auto outcome = ranks.all[rank]->take_outcome();
      ASSERT_TRUE(outcome) << "seed " << seed << ", rank " << rank;
      first = first ? first : outcome;
      EXPECT_EQ(outcome->members, first->members) << "seed " << seed;
      EXPECT_EQ(outcome->id, first->id) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace ringbolt::group
