#include "group/makers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <barrier>
#include <cerrno>
#include <cstring>
#include <thread>

#include "group/group_numbers.h"

namespace ringbolt::group {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// The numbers of one rank, of which `n_refusals` attempts find one that another thread has just taken.
class Source final : public NumberSource {
 public:
  uint16_t next() override { return runs_out ? kFirstShrunkGroup : numbers.next_split(); }
  std::vector<bool> free() override { return numbers.free_for_split(under_way); }
  bool reserve(std::span<const uint16_t> wanted) override {
    if (n_refusals > 0) {
      --n_refusals;
      return false;
    }
    const bool is_granted = numbers.reserve(wanted, under_way);
    n_reserved += is_granted ? 1 : 0;
    return is_granted;
  }
  void release(std::span<const uint16_t> kept) override {
    --n_reserved;
    for (const uint16_t number : kept) {
      numbers.unreserve(number);
    }
  }
  void make(uint16_t number) {
    ASSERT_TRUE(numbers.reserve(std::vector<uint16_t>{number}, under_way));
    numbers.make(number);
  }

  GroupNumbers numbers;
  std::vector<bool> under_way = std::vector<bool>(size_t{UINT16_MAX} + 1);
  bool runs_out = false;
  int n_refusals = 0;
  int n_reserved = 0;
};

/// So many makers, each in a thread, who reach each other through this.
class Room {
 public:
  explicit Room(size_t n)
      : sources(n), pauses(n), ends_(n), words(n), told_(n), barrier_(static_cast<std::ptrdiff_t>(n)) {}

  /// Each maker's wish; what it has come to is in agreed(), or its error's words.
  void agree(const std::vector<Wish>& wishes, uint16_t group = 0) {
    each([&](uint32_t maker, const Makers& makers) {
      ends_[maker] = makers.agree(sources[maker], group, wishes[maker]);
    });
  }
  /// `call` in a thread of each maker.
  void each(const std::function<void(uint32_t, const Makers&)>& call) {
    std::vector<std::thread> threads;
    for (uint32_t maker = 0; maker < sources.size(); ++maker) {
      threads.emplace_back([&, maker] {
        const Makers makers(
            "split", sources.size(),
            [&](const void* mine, void* all, size_t bytes) { return exchange(maker, mine, all, bytes); },
            [&](milliseconds time) { pauses[maker].push_back(time); });
        try {
          call(maker, makers);
        } catch (const JoinError& error) {
          words[maker] = error.what();
          codes.store(error.code());
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  }
  Agreed& agreed(size_t maker) { return ends_[maker]; }

  std::vector<Source> sources;
  std::vector<std::vector<milliseconds>> pauses;
  std::vector<Agreed> ends_;
  std::vector<std::string> words;
  std::atomic<int> codes = 0;
  Status fault = {};  ///< of every exchange

 private:
  Status exchange(size_t maker, const void* mine, void* all, size_t bytes) {
    told_[maker] = mine;
    barrier_.arrive_and_wait();
    for (size_t i = 0; i < told_.size(); ++i) {
      std::memcpy(static_cast<std::byte*>(all) + i * bytes, told_[i], bytes);
    }
    barrier_.arrive_and_wait();  // `mine` is the caller's again
    return fault;
  }

  std::vector<const void*> told_;
  std::barrier<> barrier_;
};

TEST(Makers, those_of_one_color_are_ordered_by_key_and_then_by_themselves) {
  Agreed agreed;
  agreed.wishes = {{7, 5, 0, 0}, {2, 0, 0, 0}, {7, -1, 0, 0}, {-1, 0, 0, 0}, {7, 5, 0, 0}};
  EXPECT_THAT(agreed.makers_of(7), ElementsAre(2, 0, 4));
  EXPECT_THAT(agreed.makers_of(2), ElementsAre(1));
}

TEST(Makers, give_each_color_the_next_number_that_none_of_them_has_had) {
  Room room(3);
  for (uint16_t number = 0; number < 5; ++number) {
    room.sources[1].make(number);  // of groups that the others are no members of
  }
  room.agree({{7, 0, 0, 0}, {-1, 0, 0, 0}, {2, 0, 0, 0}});
  for (size_t maker = 0; maker < 3; ++maker) {
    EXPECT_EQ(room.words[maker], "");
    EXPECT_THAT(room.agreed(maker).colors, ElementsAre(2, 7)) << "maker " << maker;
    EXPECT_EQ(room.agreed(maker).number_of(2), 5);
    EXPECT_EQ(room.agreed(maker).number_of(7), 6);
    EXPECT_TRUE(room.pauses[maker].empty());
  }
}

TEST(Makers, without_a_color_need_no_number) {
  Room room(2);
  room.agree({{-1, 0, 0, 0}, {-5, 0, 0, 0}});
  EXPECT_TRUE(room.agreed(0).colors.empty());
  EXPECT_TRUE(room.agreed(0).numbers->numbers().empty());
  EXPECT_EQ(room.words[0], "");
}

TEST(Makers, keep_the_numbers_for_as_long_as_what_was_agreed) {
  Room room(2);
  room.agree({{0, 0, 0, 0}, {0, 0, 0, 0}});
  EXPECT_EQ(room.sources[0].n_reserved, 1);
  EXPECT_TRUE(room.sources[0].numbers.may_make(0));
  room.agreed(0).numbers.reset();
  EXPECT_EQ(room.sources[0].n_reserved, 0);
  EXPECT_FALSE(room.sources[0].numbers.may_make(0));
}

TEST(Makers, try_again_when_one_of_them_has_given_a_number_away) {
  Room room(3);
  room.sources[2].n_refusals = 2;
  room.agree({{0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}}, 9);
  for (size_t maker = 0; maker < 3; ++maker) {
    EXPECT_EQ(room.words[maker], "");
    EXPECT_EQ(room.pauses[maker].size(), 2U);
    EXPECT_EQ(room.pauses[maker], room.pauses[0]);  // all of one group wait alike
    EXPECT_EQ(room.sources[maker].n_reserved, 1);   // what they kept in vain is given back
    EXPECT_EQ(room.agreed(maker).number_of(0), room.agreed(0).number_of(0));
  }
}

TEST(Makers, of_another_group_pause_for_other_times) {
  std::vector<std::vector<milliseconds>> pauses;
  for (uint16_t group = 1; group <= 2; ++group) {
    Room room(1);
    room.sources[0].n_refusals = 20;
    room.agree({{0, 0, 0, 0}}, group);
    ASSERT_EQ(room.pauses[0].size(), 20U);
    for (const milliseconds time : room.pauses[0]) {
      EXPECT_LT(time, milliseconds(64));
    }
    pauses.push_back(room.pauses[0]);
  }
  EXPECT_NE(pauses[0], pauses[1]);
}

TEST(Makers, give_up_after_a_hundred_tries_on_all_ranks) {
  Room room(2);
  room.sources[1].n_refusals = 1000;
  room.agree({{0, 0, 0, 0}, {0, 0, 0, 0}});
  for (size_t maker = 0; maker < 2; ++maker) {
    EXPECT_EQ(room.words[maker], "split: other threads have made groups 100 times meanwhile");
    EXPECT_EQ(room.pauses[maker].size(), 100U);
    EXPECT_EQ(room.sources[maker].n_reserved, 0);
  }
}

TEST(Makers, take_what_all_can_give_again_when_fresh_numbers_have_run_out) {
  Room room(2);
  room.sources[0].make(0);
  room.sources[1].make(2);
  room.sources[1].runs_out = true;  // says one of them
  room.agree({{4, 0, 0, 0}, {5, 0, 0, 0}});
  for (size_t maker = 0; maker < 2; ++maker) {
    EXPECT_EQ(room.words[maker], "");
    EXPECT_THAT(room.agreed(maker).numbers->numbers(), ElementsAre(1, 3)) << "maker " << maker;
  }
}

TEST(Makers, wait_for_a_number_whose_words_are_still_under_way) {
  Room room(2);
  room.sources[0].runs_out = true;
  room.sources[1].under_way.assign(room.sources[1].under_way.size(), true);
  room.agree({{0, 0, 0, 0}, {0, 0, 0, 0}});
  for (size_t maker = 0; maker < 2; ++maker) {
    EXPECT_THAT(room.words[maker], HasSubstr("16384 groups are there at the same time"));
    EXPECT_EQ(room.pauses[maker].size(), 100U);
  }
}

TEST(Makers, hear_of_a_failed_exchange_with_its_code) {
  Room room(1);
  room.fault = {ETIMEDOUT, "the deadline has passed"};
  room.agree({{0, 0, 0, 0}});
  EXPECT_EQ(room.words[0], "split: the deadline has passed");
  EXPECT_EQ(room.codes, ETIMEDOUT);
  EXPECT_EQ(room.sources[0].n_reserved, 0);
}

TEST(Makers, do_without_what_is_down_at_any_of_them) {
  Room room(3);
  const std::vector<std::vector<bool>> down = {{false, true, false, false}, {}, {false, false, false, true}};
  std::vector<std::vector<bool>> any(3);
  room.each([&](uint32_t maker, const Makers& makers) {
    any[maker] = makers.any_of(down[maker].empty() ? std::vector<bool>(4) : down[maker]);
  });
  for (const auto& at_one : any) {
    EXPECT_THAT(at_one, ElementsAre(false, true, false, true));
  }
}

TEST(Makers, without_cables_tell_each_other_nothing_of_them) {
  Room room(2);
  room.each([&](uint32_t, const Makers& makers) { EXPECT_TRUE(makers.any_of({}).empty()); });
}

TEST(Makers, hash_of_ranks_is_of_their_order_too) {
  EXPECT_EQ(hash_of({}), 0x811c9dc5U);  // FNV-1a's offset basis
  EXPECT_NE(hash_of({0, 1}), hash_of({1, 0}));
  EXPECT_NE(hash_of({0}), hash_of({0, 0}));
}

}  // namespace
}  // namespace ringbolt::group
