#include "ranks/work.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

namespace ringbolt::tools::ranks {
namespace {

Work work_of(Collective collective, size_t count = 3, uint32_t root = 1, uint32_t n_ranks = 3) {
  Work work;
  work.collective = collective;
  work.data = {Type::uint16, Reduction::sum, false, 11};
  work.count = count;
  work.root = root;
  work.n_ranks = n_ranks;
  work.is_in_place = collective == Collective::broadcast;
  return work;
}

std::vector<std::byte> input(const Work& work, uint32_t rank) {
  std::vector<std::byte> bytes(places_of(work, rank).input_bytes);
  write_input(work, rank, bytes);
  return bytes;
}

std::vector<std::byte> expected(const Work& work, uint32_t rank) {
  std::vector<std::byte> bytes(places_of(work, rank).output_bytes);
  write_expected(work, rank, bytes);
  return bytes;
}

std::vector<std::byte> piece(const std::vector<std::byte>& bytes, size_t first, size_t count) {
  const auto begin = bytes.begin() + static_cast<ptrdiff_t>(2 * first);
  return {begin, begin + static_cast<ptrdiff_t>(2 * count)};
}

std::vector<std::byte> joined(const std::vector<std::vector<std::byte>>& parts) {
  std::vector<std::byte> all;
  for (const auto& part : parts) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

TEST(Work, what_is_moved_comes_from_where_it_should) {
  Work work = work_of(Collective::all_gather);
  EXPECT_EQ(expected(work, 2), joined({input(work, 0), input(work, 1), input(work, 2)}));
  work = work_of(Collective::gather);
  EXPECT_EQ(expected(work, 1), joined({input(work, 0), input(work, 1), input(work, 2)}));
  EXPECT_TRUE(expected(work, 0).empty());
  work = work_of(Collective::broadcast);
  EXPECT_EQ(expected(work, 0), input(work, 1));
  work = work_of(Collective::scatter);
  EXPECT_EQ(expected(work, 2), piece(input(work, 1), 6, 3));
  EXPECT_TRUE(input(work, 2).empty());
  work = work_of(Collective::send_recv);
  EXPECT_EQ(expected(work, 0), input(work, 2));
  work = work_of(Collective::all_to_all);
  EXPECT_EQ(expected(work, 2),
            joined({piece(input(work, 0), 6, 3), piece(input(work, 1), 6, 3), piece(input(work, 2), 6, 3)}));
}

TEST(Work, different_counts_add_up) {
  const Work gather = work_of(Collective::all_gatherv, 4);
  EXPECT_EQ(expected(gather, 0), joined({input(gather, 0), input(gather, 1), input(gather, 2)}));
  EXPECT_EQ(input(gather, 0).size(), 0U);
  EXPECT_EQ(input(gather, 2).size(), 2U * 8);
  const Work exchange = work_of(Collective::all_to_allv, 4);
  for (uint32_t to = 0; to < 3; ++to) {
    std::vector<std::vector<std::byte>> parts;
    for (uint32_t from = 0; from < 3; ++from) {
      size_t before = 0;
      for (uint32_t s = 0; s < to; ++s) {
        before += pair_count(exchange, from, s);
      }
      parts.push_back(piece(input(exchange, from), before, pair_count(exchange, from, to)));
    }
    EXPECT_EQ(expected(exchange, to), joined(parts));
  }
}

TEST(Work, reduced_parts_are_those_of_the_whole) {
  const Work whole = work_of(Collective::all_reduce, 9);
  const Work parts = work_of(Collective::reduce_scatter, 3);
  EXPECT_EQ(joined({expected(parts, 0), expected(parts, 1), expected(parts, 2)}), expected(whole, 1));
  const Work at_root = work_of(Collective::reduce, 9);
  EXPECT_EQ(expected(at_root, 1), expected(whole, 0));
  EXPECT_TRUE(expected(at_root, 2).empty());
}

TEST(Work, one_memory_holds_both) {
  Work work = work_of(Collective::reduce_scatter);
  work.is_in_place = true;
  Places places = places_of(work, 2);
  EXPECT_EQ(places.output_at, 2U * 6);
  EXPECT_EQ(places.memory_bytes(), 2U * 9);
  work = work_of(Collective::all_gatherv, 4);
  work.is_in_place = true;
  places = places_of(work, 2);
  EXPECT_EQ(places.input_at, 2U * 4);
  EXPECT_EQ(places.memory_bytes(), 2U * 12);
}

TEST(GuardedMemory, says_where_bytes_differ) {
  const std::vector<std::byte> want(12);
  std::vector<std::byte> got(12);
  EXPECT_EQ(first_difference(got, want, 4), 3U);
  got[7] = std::byte{1};
  EXPECT_EQ(first_difference(got, want, 4), 1U);
  EXPECT_EQ(first_difference({}, {}, 4), 0U);
}

}  // namespace
}  // namespace ringbolt::tools::ranks
