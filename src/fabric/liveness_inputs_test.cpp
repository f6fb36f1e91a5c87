// One input at a time; liveness_test.cpp has whole clusters.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <map>

#include "fabric/liveness.h"

namespace ringbolt::fabric {
namespace {

using Kind = LivenessChange::Kind;
using Reason = LivenessChange::Reason;
using ::testing::HasSubstr;

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kStart = 5'000 * kMs;
constexpr LivenessKnobs kKnobs;

Heartbeat beat_of(uint32_t rank, uint64_t counter, uint64_t incarnation = 5) {
  Heartbeat heartbeat{.rank = rank, .n_ranks = 3, .incarnation = incarnation};
  heartbeat.counters[rank] = counter;
  return heartbeat;
}

Liveness three() { return {0, 3, {{1, "rdma_en2"}, {1, "rdma_en3"}, {2, "rdma_en4"}}, kKnobs, kStart}; }

TEST(Liveness, new_process_in_the_place_of_a_rank_is_its_death) {
  Liveness liveness = three();
  liveness.heard(beat_of(1, 1), kStart + kMs);
  liveness.heard(beat_of(1, 2, 6), kStart + 2 * kMs);
  EXPECT_EQ(liveness.next_deadline_ns(), kStart + 2 * kMs);
  const auto changes = liveness.check(kStart + 2 * kMs);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_THAT(changes[0].text, HasSubstr("rank 1 is dead: another process has taken its place"));
  EXPECT_EQ(liveness.failed_ranks(), 2U);
  liveness.heard(beat_of(1, 3, 6), kStart + 3 * kMs);  // too late
  EXPECT_TRUE(liveness.check(kStart + 3 * kMs).empty());
}

TEST(Liveness, other_end_alone_does_not_say_that_a_cable_works) {
  Liveness liveness = three();
  uint64_t now = kStart;
  const auto hear_rank_1 = [&](std::initializer_list<uint32_t> cables, uint64_t turn) {
    now += kKnobs.interval_ns;
    for (const uint32_t cable : cables) {
      liveness.heard_through(cable, beat_of(1, turn), now);
    }
    liveness.heard_through(2, beat_of(2, turn), now);
    return liveness.check(now);
  };
  uint64_t turn = 1;
  while (liveness.is_cable_up(1)) {
    hear_rank_1({0}, turn++);
    ASSERT_LT(turn, 50U);
  }
  EXPECT_FALSE(liveness.confirm_up(1, now));
  EXPECT_FALSE(liveness.is_cable_up(1));
  EXPECT_TRUE(hear_rank_1({0, 1}, turn++).empty());
  EXPECT_TRUE(liveness.confirm_up(1, now));
  EXPECT_TRUE(liveness.is_cable_up(1));
  for (int i = 0; i < 50; ++i) {
    EXPECT_TRUE(hear_rank_1({0, 1}, turn++).empty());  // it is not told once more
  }
  liveness.cable_error(1, "port error", now);
  EXPECT_EQ(liveness.check(now).size(), 1U);
  hear_rank_1({0, 1}, turn++);
  EXPECT_FALSE(liveness.confirm_up(1, now));  // until it is mended
}

TEST(Liveness, cable_that_is_not_there_is_not_up) {
  Liveness liveness = three();
  EXPECT_FALSE(liveness.confirm_up(3, kStart));
  EXPECT_FALSE(liveness.is_cable_up(3));
  EXPECT_FALSE(liveness.confirm_up(UINT32_MAX, kStart));
}

TEST(Liveness, cable_that_stays_silent_although_it_was_mended_is_down_once_more) {
  Liveness liveness = three();
  uint64_t now = kStart;
  uint64_t turn = 1;
  const auto go_on = [&] {
    now += kKnobs.interval_ns;
    liveness.heard_through(0, beat_of(1, turn), now);
    liveness.heard_through(2, beat_of(2, turn++), now);
    return liveness.check(now);
  };
  liveness.cable_error(1, "port error", now);
  EXPECT_EQ(liveness.check(now).size(), 1U);
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(go_on().empty());  // it is for others to mend it
  }
  for (int time = 0; time < 3; ++time) {
    liveness.cable_mended(1, now);
    const uint64_t mended_ns = now;
    std::vector<LivenessChange> changes;
    while (changes.empty() && now < mended_ns + 2 * kKnobs.heal_ns) {
      changes = go_on();
    }
    ASSERT_EQ(changes.size(), 1U);
    EXPECT_EQ(changes[0].kind, Kind::cable_down);
    EXPECT_EQ(changes[0].cable, 1U);
    EXPECT_THAT(changes[0].text, HasSubstr("is still down: silent for"));
    EXPECT_LE(now - mended_ns, kKnobs.heal_ns + kKnobs.interval_ns);
    liveness.cable_error(1, changes[0].text, now);  // as the mesh does, until it is connected anew
  }
}

TEST(Liveness, cable_error_is_reported_at_once_and_heals_only_when_mended) {
  Liveness liveness = three();
  liveness.cable_error(1, "port error", kStart + kMs);
  EXPECT_EQ(liveness.next_deadline_ns(), kStart + kMs);
  const auto changes = liveness.check(kStart + kMs);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].text, "cable 1 (rdma_en3) to rank 1 is down: port error");
  EXPECT_FALSE(liveness.is_cable_up(1));
  EXPECT_TRUE(liveness.is_cable_up(0));
  uint64_t now = kStart + kMs;
  uint64_t up_at = 0;
  for (uint64_t turn = 1; turn < 100; ++turn) {
    now += kKnobs.interval_ns;
    for (const uint32_t cable : {0U, 1U}) {
      liveness.heard_through(cable, beat_of(1, turn), now);
    }
    liveness.heard_through(2, beat_of(2, turn), now);
    if (turn == 50) {
      liveness.cable_mended(1, now);
    }
    for (const auto& change : liveness.check(now)) {
      EXPECT_EQ(change.kind, Kind::cable_up) << change.text;
      up_at = turn;
    }
  }
  EXPECT_EQ(up_at, 50 + kKnobs.heal_ns / kKnobs.interval_ns);
}

TEST(Liveness, errors_that_the_network_can_cause_are_not_certain) {
  for (const auto& [error, is_certain] : std::map<int, bool>{{0, true}, {ECONNRESET, true}, {ETIMEDOUT, false}}) {
    Liveness liveness = three();
    liveness.side_channel_closed(2, error, kStart);
    const auto changes = liveness.check(kStart);
    ASSERT_EQ(changes.size(), 1U);
    EXPECT_EQ(changes[0].is_certain, is_certain) << error;
  }
  Liveness liveness = three();
  liveness.left(2, kStart);
  EXPECT_EQ(liveness.check(kStart).at(0).reason, Reason::left);
}

TEST(Liveness, foolish_input_does_nothing) {
  Liveness liveness = three();
  liveness.heard_through(2, beat_of(1, 9), kStart);  // not at the other end
  liveness.heard_through(7, beat_of(1, 9), kStart);
  liveness.heard(beat_of(0, 9), kStart);  // myself
  Heartbeat other = beat_of(1, 9);
  other.n_ranks = 4;
  liveness.heard(other, kStart);
  liveness.side_channel_closed(0, 0, kStart);
  liveness.side_channel_closed(9, 0, kStart);
  liveness.left(64, kStart);
  liveness.host_answered(64, kStart);
  liveness.cable_error(3, "", kStart);
  EXPECT_TRUE(liveness.check(kStart).empty());
  EXPECT_EQ(liveness.heartbeat(1, 5, 7, kStart).counters[1], 0U);
}

}  // namespace
}  // namespace ringbolt::fabric
