#include "sanitizer/race_table.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "sanitizer/kept_memory.h"

namespace ringbolt::sanitizer {
namespace {

/// Two processes, of which the test plays both; the other one is that which has started it.
class Races : public ::testing::Test {
 protected:
  Races() {
    char path[] = "/tmp/rb-races-XXXXXX";
    ::close(::mkstemp(path));
    path_ = path;
  }
  ~Races() override { ::unlink(path_.c_str()); }

  static RaceTable::Entry entry(Access access, uint64_t first, int32_t pid) {
    return {9, first, 100, 5, 7, pid, access};
  }
  std::optional<RaceTable::Entry> met_by(RaceTable& table, const RaceTable::Entry& one) {
    std::optional<RaceTable::Entry> other;
    place_ = table.enter(one, other);
    return other;
  }

  const int32_t mine_ = ::getpid();
  const int32_t other_ = ::getppid();
  std::string path_;
  std::optional<uint32_t> place_;
};

TEST_F(Races, both_processes_hear_of_it) {
  RaceTable first(path_);
  RaceTable second(path_);
  EXPECT_FALSE(met_by(first, entry(Access::write, 1000, mine_)));
  const auto place = place_;
  ASSERT_TRUE(place);
  const auto other = met_by(second, entry(Access::read, 1099, other_));
  ASSERT_TRUE(other);
  EXPECT_EQ(other->pid, mine_);
  const auto met = first.leave(*place);
  ASSERT_TRUE(met);
  EXPECT_EQ(met->pid, other_);
  EXPECT_EQ(met->access, Access::read);
  EXPECT_FALSE(second.leave(*place_));
  EXPECT_FALSE(met_by(second, entry(Access::write, 1000, other_))) << "the first one is over";
}

TEST_F(Races, order_kind_and_place_matter) {
  RaceTable table(path_);
  EXPECT_FALSE(met_by(table, entry(Access::atomic, 1000, mine_)));
  EXPECT_FALSE(met_by(table, entry(Access::read, 1000, mine_))) << "a process sees its own by itself, with the lines";
  EXPECT_FALSE(met_by(table, entry(Access::write, 1100, other_))) << "behind it";
  EXPECT_FALSE(met_by(table, entry(Access::write, 900, other_))) << "before it";
  EXPECT_FALSE(met_by(table, entry(Access::atomic, 1000, other_)));
  EXPECT_FALSE(met_by(table, entry(Access::read, 1000, other_)));
  RaceTable::Entry elsewhere = entry(Access::write, 1000, other_);
  elsewhere.rkey = 6;
  EXPECT_FALSE(met_by(table, elsewhere));
  elsewhere = entry(Access::write, 1000, other_);
  elsewhere.peer = 8;
  EXPECT_FALSE(met_by(table, elsewhere));
  EXPECT_TRUE(met_by(table, entry(Access::write, 1001, other_)));
}

TEST_F(Races, the_dead_race_with_nobody_and_a_full_table_takes_no_more) {
  RaceTable table(path_);
  constexpr int32_t kNobody = INT32_MAX - 1;
  EXPECT_FALSE(met_by(table, entry(Access::write, 1000, kNobody)));
  EXPECT_FALSE(met_by(table, entry(Access::write, 1000, mine_)));
  for (uint32_t i = 1; i < RaceTable::kPlaces; ++i) {
    ASSERT_FALSE(met_by(table, entry(Access::read, 5000, mine_)));
    ASSERT_TRUE(place_);
  }
  met_by(table, entry(Access::read, 5000, mine_));
  EXPECT_FALSE(place_);
  EXPECT_FALSE(table.leave(RaceTable::kPlaces));
}

TEST_F(Races, a_full_table_gives_the_places_of_the_dead_to_others) {
  RaceTable table(path_);
  constexpr int32_t kNobody = INT32_MAX - 1;
  for (uint32_t i = 0; i < RaceTable::kPlaces; ++i) {  // each apart from what comes later: nothing overlaps it
    ASSERT_FALSE(met_by(table, entry(Access::read, 1000, i % 2 == 0 ? mine_ : kNobody)));
    ASSERT_TRUE(place_);
  }
  for (uint32_t i = 0; i < RaceTable::kPlaces / 2; ++i) {
    EXPECT_FALSE(met_by(table, entry(Access::write, 5000, mine_)));
    ASSERT_TRUE(place_) << i;
    EXPECT_EQ(*place_ % 2, 1U) << "those of the living stay";
  }
  met_by(table, entry(Access::write, 5000, mine_));
  EXPECT_FALSE(place_);
}

TEST_F(Races, a_full_table_is_looked_through_for_the_dead_once_a_second) {
  static uint64_t now_ns;
  now_ns = 5'000'000'000;
  RaceTable table(path_, [] { return now_ns; });
  constexpr int32_t kNobody = INT32_MAX - 1;
  const auto enters = [&](int32_t pid) {
    met_by(table, entry(Access::read, 1000, pid));
    return place_.has_value();
  };
  for (uint32_t i = 0; i < RaceTable::kPlaces; ++i) {
    ASSERT_TRUE(enters(mine_));
  }
  EXPECT_FALSE(enters(mine_)) << "looked through, and nobody was dead";
  ASSERT_FALSE(table.leave(7));
  ASSERT_TRUE(enters(kNobody));
  now_ns += RaceTable::kSweepPauseNs - 1;
  EXPECT_FALSE(enters(mine_));
  now_ns += 1;
  EXPECT_TRUE(enters(mine_));
  EXPECT_EQ(*place_, 7U);
}

TEST_F(Races, without_a_file_there_is_nothing) {
  RaceTable table("/no/such/folder/races");
  EXPECT_FALSE(met_by(table, entry(Access::write, 1000, mine_)));
  EXPECT_FALSE(place_);
  EXPECT_FALSE(table.leave(0));
}

int regions = 0;
void* add_region(ibv_pd*, void*, size_t, uint32_t* lkey) {
  *lkey = static_cast<uint32_t>(++regions);
  return &regions;
}
void* add_none(ibv_pd*, void*, size_t, uint32_t*) { return nullptr; }
void remove_region(void*) { --regions; }

TEST(KeptMemory, pieces_are_used_again_and_regions_go_with_it) {
  {
    KeptMemory memory(nullptr, {add_region, remove_region});
    const KeptMemory::Piece one = memory.take(100);
    const KeptMemory::Piece two = memory.take(128);
    ASSERT_NE(one.memory, nullptr);
    EXPECT_NE(one.memory, two.memory);
    EXPECT_EQ(one.length, 100U);
    EXPECT_EQ(regions, 1);
    memory.give_back(one);
    EXPECT_EQ(memory.take(65).memory, one.memory);
    EXPECT_NE(memory.take(16U << 20U).memory, nullptr);
    EXPECT_EQ(memory.take((16U << 20U) + 1).memory, nullptr);
  }
  EXPECT_EQ(regions, 0);
  KeptMemory none(nullptr, {add_none, remove_region});
  EXPECT_EQ(none.take(8).memory, nullptr);
}

}  // namespace
}  // namespace ringbolt::sanitizer
