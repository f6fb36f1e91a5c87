#include "fabric/liveness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <map>
#include <random>
#include <utility>
#include <vector>

namespace ringbolt::fabric {
namespace {

using Kind = LivenessChange::Kind;
using Reason = LivenessChange::Reason;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kStart = 5'000 * kMs;
/// What messages of this world take at most.
constexpr uint64_t kLatency = 5 * kMs;
constexpr LivenessKnobs kKnobs;

/// Machines with cables between them and a star of TCP around rank 0, in simulated time. Ranks send a heartbeat each
/// interval, each at a phase of its own, and check when they are due.
class World {
 public:
  World(uint32_t n_ranks, std::vector<std::pair<uint32_t, uint32_t>> cables, uint32_t seed)
      : random_(seed), ends_(std::move(cables)), is_cut_(ends_.size()), ranks_(n_ranks) {
    for (uint32_t rank = 0; rank < n_ranks; ++rank) {
      std::vector<WatchedCable> own;
      for (uint32_t cable = 0; cable < ends_.size(); ++cable) {
        if (ends_[cable].first == rank || ends_[cable].second == rank) {
          ranks_[rank].cables.push_back(cable);
          own.push_back({ends_[cable].first == rank ? ends_[cable].second : ends_[cable].first,
                         "rdma_en" + std::to_string(own.size() + 2)});
        }
      }
      ranks_[rank].liveness.emplace_back(rank, n_ranks, own, kKnobs, now_);
      ranks_[rank].next_beat = now_ + random_() % kKnobs.interval_ns;
      ranks_[rank].side = random_() == 0 ? 1 : 0;
    }
  }

  struct Seen {
    uint64_t at = 0;  ///< since the last mark()
    LivenessChange change;
  };

  void mark() {
    marked_ = now_;
    for (Rank& rank : ranks_) {
      rank.seen.clear();
    }
  }
  const std::vector<Seen>& seen(uint32_t rank) const { return ranks_[rank].seen; }

  void run(uint64_t duration) {
    for (const uint64_t end = now_ + duration; now_ < end; now_ += kMs) {
      deliver();
      for (uint32_t rank = 0; rank < ranks_.size(); ++rank) {
        if (ranks_[rank].is_running) {
          turn(rank);
        }
      }
    }
  }

  uint64_t n_beats() const { return n_beats_; }
  void stop(uint32_t rank) { ranks_[rank].is_running = false; }
  void resume(uint32_t rank) { ranks_[rank].is_running = true; }
  void kill(uint32_t rank) {
    ranks_[rank].is_running = false;
    for (uint32_t other = 0; other < ranks_.size(); ++other) {
      if (other != rank && has_side_path(rank, other)) {
        queue(other, [this, other, rank] {
          ranks_[other].liveness[0].side_channel_closed(rank, ECONNRESET, now_);
          if (rank == 0) {
            ranks_[other].liveness[0].hosts_unknown();
          }
        });
      }
    }
  }
  void cut_power(uint32_t rank) { ranks_[rank].is_running = ranks_[rank].has_power = false; }
  void cut(uint32_t cable) { is_cut_[cable] = true; }
  void heal(uint32_t cable) { is_cut_[cable] = false; }
  /// Ranks from `first` on are on another side of everything.
  void split(uint32_t first) {
    for (uint32_t rank = first; rank < ranks_.size(); ++rank) {
      ranks_[rank].side = 1;
    }
    for (uint32_t cable = 0; cable < ends_.size(); ++cable) {
      is_cut_[cable] = is_cut_[cable] || ranks_[ends_[cable].first].side != ranks_[ends_[cable].second].side;
    }
  }

 private:
  struct Rank {
    std::vector<Liveness> liveness;  ///< one
    std::vector<uint32_t> cables;    ///< index of a cable here to that in the world
    std::vector<Seen> seen;
    uint64_t next_beat = 0;
    uint64_t turn = 0;
    uint32_t side = 0;
    bool is_running = true;
    bool has_power = true;
  };

  /// Through rank 0, which has to forward.
  bool has_side_path(uint32_t from, uint32_t to) const {
    const bool is_direct = from == 0 || to == 0;
    return ranks_[from].side == ranks_[to].side &&
           (is_direct || (ranks_[0].is_running && ranks_[0].side == ranks_[from].side));
  }

  void queue(uint32_t to, std::function<void()> arrival) {
    const uint64_t delay = kMs + random_() % (kLatency - 2 * kMs);
    arrivals_.emplace(now_ + delay, std::pair{to, std::move(arrival)});
  }

  void deliver() {
    while (!arrivals_.empty() && arrivals_.begin()->first <= now_) {
      const auto [to, arrival] = std::move(arrivals_.begin()->second);
      arrivals_.erase(arrivals_.begin());
      if (ranks_[to].is_running) {
        arrival();
      }
    }
  }

  /// `is_whole`: through the side channel, too.
  void beat(uint32_t from, bool is_whole) {
    Rank& sender = ranks_[from];
    // TCP tells who acknowledges: rank 0 of all, the others of rank 0.
    for (uint32_t other = 0; other < ranks_.size(); ++other) {
      const bool is_connected = (from == 0) != (other == 0);
      if (is_connected && ranks_[other].has_power && ranks_[other].side == sender.side) {
        sender.liveness[0].host_answered(other, now_);
      }
    }
    const Heartbeat heartbeat = sender.liveness[0].heartbeat(1, 77 + from, ++sender.turn, now_);
    for (const uint32_t cable : sender.cables) {
      const uint32_t to = ends_[cable].first == from ? ends_[cable].second : ends_[cable].first;
      const auto at = std::find(ranks_[to].cables.begin(), ranks_[to].cables.end(), cable) - ranks_[to].cables.begin();
      if (!is_cut_[cable]) {
        queue(to, [this, to, at, heartbeat] {
          ranks_[to].liveness[0].heard_through(static_cast<uint32_t>(at), heartbeat, now_);
        });
      }
    }
    ++n_beats_;
    for (uint32_t to = 0; to < ranks_.size(); ++to) {
      if (is_whole && to != from && has_side_path(from, to)) {
        queue(to, [this, to, heartbeat] { ranks_[to].liveness[0].heard(heartbeat, now_); });
      }
    }
  }

  void turn(uint32_t rank) {
    Rank& own = ranks_[rank];
    if (now_ >= own.next_beat) {
      beat(rank, true);
      own.next_beat = now_ + kKnobs.interval_ns;
    } else if (now_ >= own.liveness[0].next_heartbeat_ns() && now_ > kStart + kKnobs.interval_ns) {
      beat(rank, false);
    }
    if (now_ >= own.liveness[0].next_deadline_ns()) {
      for (LivenessChange& change : own.liveness[0].check(now_)) {
        own.seen.push_back({now_ - marked_, std::move(change)});
      }
    }
  }

  std::mt19937 random_;
  uint64_t now_ = kStart;
  uint64_t marked_ = kStart;
  uint64_t n_beats_ = 0;
  std::vector<std::pair<uint32_t, uint32_t>> ends_;
  std::vector<bool> is_cut_;
  std::vector<Rank> ranks_;
  std::multimap<uint64_t, std::pair<uint32_t, std::function<void()>>> arrivals_;
};

std::vector<std::pair<uint32_t, uint32_t>> ring(uint32_t n) {
  std::vector<std::pair<uint32_t, uint32_t>> cables;
  for (uint32_t i = 0; i < n; ++i) {
    cables.push_back({i, (i + 1) % n});
  }
  return cables;
}

std::string text_of(const std::vector<World::Seen>& seen) {
  std::string text;
  for (const auto& [at, change] : seen) {
    text += "at " + std::to_string(at / kMs) + " ms: " + change.text + "\n";
  }
  return text;
}

/// What a rank has seen is these kinds, in this order.
std::vector<Kind> kinds_of(const std::vector<World::Seen>& seen) {
  std::vector<Kind> kinds;
  for (const auto& one : seen) {
    kinds.push_back(one.change.kind);
  }
  return kinds;
}

constexpr uint32_t kSeeds = 20;

TEST(Liveness, says_nothing_while_all_is_well) {
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    World world(6, ring(6), seed);
    world.run(20'000 * kMs);
    for (uint32_t rank = 0; rank < 6; ++rank) {
      EXPECT_TRUE(world.seen(rank).empty()) << text_of(world.seen(rank));
    }
    EXPECT_LE(world.n_beats(), 6 * 201U);
  }
}

TEST(Liveness, cut_cable_is_seen_by_its_ends_alone_and_heals) {
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    const uint32_t cable = seed % 6;
    World world(6, ring(6), seed);
    world.run(2'000 * kMs);
    world.mark();
    world.cut(cable);
    world.run(5'000 * kMs);
    for (uint32_t rank = 0; rank < 6; ++rank) {
      const bool is_end = rank == cable || rank == (cable + 1) % 6;
      ASSERT_EQ(kinds_of(world.seen(rank)), std::vector<Kind>(is_end ? 1 : 0, Kind::cable_down))
          << text_of(world.seen(rank));
      if (is_end) {
        EXPECT_LE(world.seen(rank)[0].at, kKnobs.failed_ns + kLatency);
        EXPECT_GE(world.seen(rank)[0].at, kKnobs.failed_ns - kKnobs.interval_ns - kLatency);
        EXPECT_THAT(world.seen(rank)[0].change.text,
                    AllOf(HasSubstr("(rdma_en"), HasSubstr("to rank "), HasSubstr("is down")));
      }
    }
    world.mark();
    world.heal(cable);
    world.run(5'000 * kMs);
    for (const uint32_t rank : {cable, (cable + 1) % 6}) {
      ASSERT_EQ(kinds_of(world.seen(rank)), std::vector<Kind>{Kind::cable_up}) << text_of(world.seen(rank));
      EXPECT_GE(world.seen(rank)[0].at, kKnobs.heal_ns);
      EXPECT_LE(world.seen(rank)[0].at, kKnobs.heal_ns + kKnobs.interval_ns + 2 * kLatency);
    }
  }
}

TEST(Liveness, rank_whose_cables_are_all_cut_lives) {
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    World world(5, ring(5), seed);
    world.run(2'000 * kMs);
    world.cut(1);
    world.cut(2);
    world.run(15'000 * kMs);
    EXPECT_EQ(kinds_of(world.seen(2)), (std::vector<Kind>{Kind::cable_down, Kind::cable_down}));
    for (const uint32_t rank : {1U, 3U}) {
      EXPECT_EQ(kinds_of(world.seen(rank)), std::vector<Kind>{Kind::cable_down}) << text_of(world.seen(rank));
    }
    EXPECT_TRUE(world.seen(0).empty());
    EXPECT_TRUE(world.seen(4).empty());
  }
}

TEST(Liveness, dead_process_is_reported_at_once) {
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    const uint32_t victim = seed % 5;
    World world(5, ring(5), seed);
    world.run(2'000 * kMs);
    world.mark();
    world.kill(victim);
    world.run(15'000 * kMs);
    for (uint32_t rank = 0; rank < 5; ++rank) {
      if (rank != victim) {
        // Without rank 0 there is no side channel, and news takes the long way round: that may look suspicious for a
        // moment.
        const auto& first = world.seen(rank).at(0);
        EXPECT_EQ(first.change.kind, Kind::rank_failed);
        EXPECT_EQ(first.change.reason, Reason::dead);
        EXPECT_EQ(first.change.rank, victim);
        EXPECT_TRUE(first.change.is_certain);
        EXPECT_LE(first.at, kLatency + kMs);
        const auto n_failures = std::ranges::count_if(
            world.seen(rank), [](const auto& seen) { return seen.change.kind == Kind::rank_failed; });
        EXPECT_EQ(n_failures, 1) << text_of(world.seen(rank));
        EXPECT_TRUE(victim == 0 || world.seen(rank).size() == 1) << text_of(world.seen(rank));
      }
    }
  }
}

TEST(Liveness, news_gets_round_the_largest_ring_without_rank_0) {
  for (const bool is_frozen : {false, true}) {
    World world(64, ring(64), 1);
    world.run(2'000 * kMs);
    if (is_frozen) {
      world.stop(0);
    } else {
      world.kill(0);
    }
    world.run(5'000 * kMs);
    for (uint32_t rank = 1; rank < 64; ++rank) {
      for (const auto& [at, change] : world.seen(rank)) {
        const bool is_of_another = change.rank != 0;
        EXPECT_FALSE(is_of_another && change.kind != Kind::rank_suspect && change.kind != Kind::rank_back)
            << text_of(world.seen(rank));
      }
    }
  }
}

TEST(Liveness, short_stop_is_suspect_and_forgotten) {
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    const uint32_t victim = 1 + seed % 4;
    World world(5, ring(5), seed);
    world.run(2'000 * kMs);
    world.mark();
    world.stop(victim);
    world.run(700 * kMs);
    world.resume(victim);
    world.run(5'000 * kMs);
    for (uint32_t rank = 0; rank < 5; ++rank) {
      if (rank == victim) {
        EXPECT_EQ(kinds_of(world.seen(rank)), std::vector<Kind>{Kind::self_paused}) << text_of(world.seen(rank));
      } else {
        ASSERT_EQ(kinds_of(world.seen(rank)), (std::vector<Kind>{Kind::rank_suspect, Kind::rank_back}))
            << text_of(world.seen(rank));
        EXPECT_LE(world.seen(rank)[0].at, kKnobs.suspect_ns + kLatency);
      }
    }
  }
}

TEST(Liveness, stopped_process_is_frozen_and_comes_back_without_blame) {
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    const uint32_t victim = seed % 5;
    World world(5, ring(5), seed);
    world.run(2'000 * kMs);
    world.mark();
    world.stop(victim);
    world.run(6'000 * kMs);
    for (uint32_t rank = 0; rank < 5; ++rank) {
      const auto frozen = std::ranges::find_if(world.seen(rank),
                                               [](const auto& seen) { return seen.change.kind == Kind::rank_frozen; });
      if (rank != victim) {
        ASSERT_NE(frozen, world.seen(rank).end()) << text_of(world.seen(rank));
        EXPECT_EQ(frozen->change.rank, victim);
        EXPECT_LE(frozen->at, kKnobs.failed_ns + kLatency + (victim == 0 ? 3 : 1) * kKnobs.interval_ns);
        EXPECT_THAT(frozen->change.text,
                    AllOf(HasSubstr("rank " + std::to_string(victim) + " is frozen"), HasSubstr("cable")));
      }
    }
    world.resume(victim);
    world.run(8'000 * kMs);
    for (uint32_t rank = 0; rank < 5; ++rank) {
      for (const auto& [at, change] : world.seen(rank)) {
        EXPECT_NE(change.kind, Kind::rank_failed) << text_of(world.seen(rank));
        EXPECT_NE(change.kind, Kind::cable_down) << text_of(world.seen(rank));
      }
      EXPECT_EQ(world.seen(rank).back().change.kind, rank == victim ? Kind::self_paused : Kind::rank_back)
          << text_of(world.seen(rank));
    }
  }
}

// A death must not take ten seconds to be noticed because it might be a debugger.
TEST(Liveness, without_rank_0_a_silent_rank_counts_as_dead) {
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    const uint32_t victim = 1 + seed % 4;
    World world(5, ring(5), seed);
    world.run(2'000 * kMs);
    world.kill(0);
    world.run(2'000 * kMs);
    world.mark();
    world.stop(victim);
    world.run(3'000 * kMs);
    for (uint32_t rank = 1; rank < 5; ++rank) {
      if (rank == victim) {
        continue;
      }
      const auto failed = std::ranges::find_if(world.seen(rank),
                                               [](const auto& seen) { return seen.change.kind == Kind::rank_failed; });
      ASSERT_TRUE(failed != world.seen(rank).end()) << text_of(world.seen(rank));
      EXPECT_EQ(failed->change.reason, Reason::unreachable);
      // Or one beyond it: what is left is a line.
      EXPECT_THAT(failed->change.text, HasSubstr("is dead or frozen"));
      EXPECT_LE(failed->at, 2'000 * kMs);
    }
  }
}

TEST(Liveness, rank_frozen_for_longer_than_the_limit_has_failed) {
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    const uint32_t victim = 1 + seed % 4;
    World world(5, ring(5), seed);
    world.run(2'000 * kMs);
    world.mark();
    world.stop(victim);
    world.run(11'000 * kMs);
    for (uint32_t rank = 0; rank < 5; ++rank) {
      if (rank != victim) {
        ASSERT_EQ(kinds_of(world.seen(rank)),
                  (std::vector<Kind>{Kind::rank_suspect, Kind::rank_frozen, Kind::rank_failed}))
            << text_of(world.seen(rank));
        EXPECT_EQ(world.seen(rank)[2].change.reason, Reason::frozen);
        EXPECT_FALSE(world.seen(rank)[2].change.is_certain);
        EXPECT_LE(world.seen(rank)[2].at, kKnobs.frozen_ns + kKnobs.interval_ns + kLatency);
      }
    }
  }
}

TEST(Liveness, host_without_power_is_unreachable_within_its_limit) {
  for (uint32_t seed = 0; seed < kSeeds; ++seed) {
    const uint32_t victim = seed % 5;
    World world(5, ring(5), seed);
    world.run(2'000 * kMs);
    world.mark();
    world.cut_power(victim);
    world.run(5'000 * kMs);
    for (uint32_t rank = 0; rank < 5; ++rank) {
      if (rank != victim) {
        const auto failed = std::ranges::find_if(
            world.seen(rank), [](const auto& seen) { return seen.change.kind == Kind::rank_failed; });
        ASSERT_NE(failed, world.seen(rank).end()) << text_of(world.seen(rank));
        EXPECT_EQ(failed->change.reason, Reason::unreachable);
        EXPECT_EQ(failed->change.rank, victim);
        EXPECT_FALSE(failed->change.is_certain);
        EXPECT_GE(failed->at, kKnobs.failed_ns - kKnobs.interval_ns - kLatency);
        // Beyond the failed side channel of rank 0, news of its last beat goes round the ring.
        EXPECT_LE(failed->at, kKnobs.failed_ns + (victim == 0 ? 3 : 1) * kKnobs.interval_ns + kLatency)
            << text_of(world.seen(rank));
        for (const auto& [at, change] : world.seen(rank)) {
          EXPECT_TRUE(change.rank == victim || change.kind == Kind::rank_suspect || change.kind == Kind::rank_back)
              << text_of(world.seen(rank));
        }
      }
    }
  }
}

TEST(Liveness, split_network_is_called_so_on_both_sides) {
  for (const uint32_t n_ranks : {4U, 5U}) {
    for (uint32_t seed = 0; seed < kSeeds; ++seed) {
      World world(n_ranks, ring(n_ranks), seed);
      world.run(2'000 * kMs);
      world.mark();
      world.split(2);
      world.run(5'000 * kMs);
      for (uint32_t rank = 0; rank < n_ranks; ++rank) {
        const uint64_t others = rank < 2 ? ((uint64_t{1} << n_ranks) - 1) & ~uint64_t{3} : 3;
        uint64_t failed = 0;
        uint64_t silent = 0;
        for (const auto& [at, change] : world.seen(rank)) {
          failed |= change.kind == Kind::rank_failed ? uint64_t{1} << change.rank : 0;
          silent = change.kind == Kind::partition ? change.silent : silent;
          EXPECT_LE(at, kKnobs.failed_ns + 3 * kKnobs.interval_ns + kLatency) << text_of(world.seen(rank));
        }
        EXPECT_EQ(failed, others) << text_of(world.seen(rank));
        EXPECT_EQ(silent, others) << text_of(world.seen(rank));
      }
    }
  }
}

}  // namespace
}  // namespace ringbolt::fabric
