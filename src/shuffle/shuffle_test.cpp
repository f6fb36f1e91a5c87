#include "shuffle/shuffle.h"

#include <gtest/gtest.h>

#include <vector>

namespace ringbolt::shuffle {
namespace {

Shuffle shuffle_of(const char* text, uint64_t role = 5) { return {*parse_wish(text), role}; }

TEST(Shuffle, decides_the_same_for_the_same_seed_role_place_and_number) {
  const Shuffle one = shuffle_of("7");
  const Shuffle same = shuffle_of("7");
  const Shuffle other_role = shuffle_of("7", 6);
  int differences = 0;
  for (uint64_t number = 1; number <= 200; ++number) {
    EXPECT_EQ(one.draw(Kind::order, 3, number), same.draw(Kind::order, 3, number));
    differences += one.draw(Kind::order, 3, number) != other_role.draw(Kind::order, 3, number) ? 1 : 0;
    differences += one.draw(Kind::order, 3, number) != one.draw(Kind::order, 4, number) ? 1 : 0;
    differences += one.draw(Kind::order, 3, number) != one.draw(Kind::acks, 3, number) ? 1 : 0;
  }
  EXPECT_GT(differences, 10);
}

TEST(Shuffle, does_nothing_beyond_the_kinds_and_operations_that_are_wished_for) {
  const Shuffle whole = shuffle_of("7");
  const Shuffle part = shuffle_of("7:order@10-20");
  for (uint64_t number = 1; number <= 100; ++number) {
    EXPECT_EQ(part.draw(Kind::late, 0, number), 0U);
    const bool is_wished = number >= 10 && number <= 20;
    EXPECT_EQ(part.draw(Kind::order, 0, number), is_wished ? whole.draw(Kind::order, 0, number) : 0U);
  }
}

TEST(Shuffle, each_kind_befalls_the_first_operation_with_some_seed_of_twenty) {
  for (size_t kind = 0; kind < kKinds; ++kind) {
    int odd = 0;
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      odd += Shuffle(Wish{seed, {}}, 5).draw(static_cast<Kind>(kind), 0, 1) != 0 ? 1 : 0;
    }
    EXPECT_GT(odd, 1) << kKindTexts[kind].name;
    EXPECT_LT(odd, 20) << kKindTexts[kind].name;
  }
}

TEST(Shuffle, long_runs_are_seldom_odd) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Shuffle shuffle(Wish{seed, {}}, 5);
    int odd = 0;
    for (uint64_t number = 1; number <= 10'000; ++number) {
      odd += shuffle.draw(Kind::acks, 0, number) != 0 ? 1 : 0;
    }
    EXPECT_LT(odd, 600) << "seed " << seed;
  }
}

TEST(Shuffle, roles_differ_by_words_rank_and_node) {
  const uint64_t server = role_of("ib_send_lat", 1, "", "");
  EXPECT_EQ(server, role_of("ib_send_lat", 1, "", ""));
  EXPECT_NE(server, role_of("ib_send_lat", 2, "", ""));
  EXPECT_NE(server, role_of("ib_send_lat", 1, "1", ""));
  EXPECT_NE(server, role_of("ib_send_lat", 1, "", "1"));
  EXPECT_NE(role_of("a", 1, "b", ""), role_of("ab", 1, "", ""));
}

TEST(Shuffle, delays_are_bounded) {
  EXPECT_EQ(delay_ns(0), 0U);
  for (Lot lot = 1; lot < 1000; ++lot) {
    EXPECT_GE(delay_ns(lot), 50'000U);
    EXPECT_LT(delay_ns(lot), 4'000'000U);
  }
}

TEST(Shuffle, parts_are_all_of_the_message_and_cut_at_words_of_the_target) {
  for (const uint64_t address : {uint64_t{4096}, uint64_t{4099}}) {
    for (const uint32_t length : {0U, 1U, 8U, 9U, 16U, 17U, 2048U, 1U << 20U}) {
      for (Lot lot = 1; lot < 200; ++lot) {
        const Parts parts = parts_of(lot, address, length);
        ASSERT_GE(parts.count, 1U);
        std::vector<bool> seen(length);
        for (uint32_t i = 0; i < parts.count; ++i) {
          EXPECT_TRUE(parts.at[i].offset == 0 || (address + parts.at[i].offset) % kWordBytes == 0);
          for (uint32_t at = 0; at < parts.at[i].length && length < 4096; ++at) {
            EXPECT_FALSE(seen[parts.at[i].offset + at]);
            seen[parts.at[i].offset + at] = true;
          }
        }
        if (length < 4096) {
          EXPECT_EQ(std::vector<bool>(length, true), seen);
        }
      }
    }
  }
  EXPECT_EQ(parts_of(9, 4096, 8).count, 1U);
  EXPECT_EQ(parts_of(0, 4096, 2048).count, 1U);
}

TEST(Shuffle, the_last_bytes_come_first_more_often_than_not) {
  int last = 0;
  for (Lot lot = 1; lot <= 100; ++lot) {
    const Parts parts = parts_of(lot, 4096, 2048);
    last += parts.at[0].offset + parts.at[0].length == 2048 ? 1 : 0;
  }
  EXPECT_GT(last, 60);
}

}  // namespace
}  // namespace ringbolt::shuffle
