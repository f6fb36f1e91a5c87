#include "check/integrity.h"

#include <algorithm>
#include <cstring>

#include <gtest/gtest.h>

#include "base/crc.h"
#include "ranks/element.h"

namespace ringbolt::tools::check {
namespace {

/// What a right collective leaves in a rank's output.
ranks::GuardedMemory right_output(const Step& step, uint32_t n_ranks) {
  std::vector<float> want(step.count * (step.is_gather ? n_ranks : 1));
  write_expected(step, n_ranks, 0, want);
  ranks::GuardedMemory output(want.size() * sizeof(float));
  std::memcpy(output.bytes().data(), want.data(), output.bytes().size());
  return output;
}

float* numbers(ranks::GuardedMemory& output) { return reinterpret_cast<float*>(output.bytes().data()); }

constexpr uint32_t kRanks = 4;
constexpr size_t kCount = 13'107;

/// Those of random and sequential data: all-ones data hide what lies in the wrong place.
std::vector<Step> telling_steps() {
  std::vector<Step> steps;
  for (const bool is_gather : {false, true}) {
    for (const Pattern pattern : {Pattern::sequential, Pattern::random}) {
      steps.push_back({is_gather, kCount, pattern, 1});
    }
  }
  return steps;
}

template <class Mutate>
void expect_found(const Mutate& mutate) {
  for (const Step& step : telling_steps()) {
    ranks::GuardedMemory output = right_output(step, kRanks);
    ASSERT_FALSE(find_wrong(step, kRanks, output));
    mutate(step, output);
    EXPECT_TRUE(find_wrong(step, kRanks, output)) << operation_of(step) << ' ' << text(step.pattern);
  }
}

constexpr size_t kChunk = 1024;

TEST(Integrity, has_54_collectives_in_order) {
  const auto steps = steps_of(*counts_of_scale("ci"));
  ASSERT_EQ(steps.size(), 54U);
  EXPECT_EQ(steps[0], (Step{false, 13'107, Pattern::ones, 0}));
  EXPECT_EQ(steps[1].round, 1U);
  EXPECT_EQ(steps[3].pattern, Pattern::sequential);
  EXPECT_EQ(steps[9].count, 52'428U);
  EXPECT_EQ(steps[53], (Step{true, 262'144, Pattern::random, 2}));
}

TEST(Integrity, scales) {
  EXPECT_EQ(counts_of_scale("full"), (std::array<size_t, 3>{262'144, 26'214'400, 134'217'728}));
  EXPECT_EQ(counts_of_scale("1"), counts_of_scale("full"));
  EXPECT_EQ(counts_of_scale("0.5"), (std::array<size_t, 3>{131'072, 13'107'200, 67'108'864}));
  EXPECT_EQ(counts_of_scale("1e-9"), (std::array<size_t, 3>{1, 1, 1}));
  for (const char* bad : {"", "0", "-1", "x", "1x", "nan", "101"}) {
    EXPECT_FALSE(counts_of_scale(bad)) << bad;
  }
}

TEST(Integrity, elements_are_the_published_ones) {
  EXPECT_EQ(mixed(0), 0xe220a8397b1dcdafU);
  constexpr std::array kRankZero{10086.0F, 21220.0F, 20553.0F, 28379.0F};
  constexpr std::array kRankOne{20080.0F, 20299.0F, -4627.0F, -15185.0F};
  for (uint64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(element(Pattern::random, 0, 0, i), kRankZero.at(i));
    EXPECT_EQ(element(Pattern::random, 1, 2, i), kRankOne.at(i));
    EXPECT_EQ(element(Pattern::ones, 3, 1, i), 1);
  }
  EXPECT_EQ(element(Pattern::sequential, 2, 1, 65'535), static_cast<float>((65'535 + 2 * 7919 + 104'729) % 65'536));
}

TEST(Integrity, checksums_are_the_published_ones) {
  constexpr uint32_t kTable[4][6] = {
      {0x1491965c, 0xa5bceffe, 0xe4beff2f, 0x80f46ac5, 0x3a7b15bd, 0x7ff60068},
      {0xb988cff2, 0x6716a945, 0xab11731d, 0x7d46c4a4, 0x3bdea700, 0xdec5c280},
      {0x4b4f53f1, 0x40262620, 0x0984b7c2, 0x46c82ca8, 0xd119d5cd, 0x35337484},
      {0x1dc3ff26, 0xf2fb2651, 0x4a90dc8b, 0x204e26e5, 0x83d39810, 0x7da0cd90},
  };
  for (uint32_t n = 2; n <= 5; ++n) {
    for (uint32_t i = 0; i < 6; ++i) {
      const Step step{i >= 3, kCount, static_cast<Pattern>(i % 3), 0};
      EXPECT_EQ(base::crc32c(0, right_output(step, n).bytes()), kTable[n - 2][i]) << n << ' ' << i;
    }
  }
}

TEST(Integrity, one_bit_is_found_with_its_place) {
  Step step{false, kCount, Pattern::random, 0};
  for (const size_t at : {size_t{0}, size_t{16'383 % kCount}, kCount - 1}) {
    ranks::GuardedMemory output = right_output(step, kRanks);
    const float right = numbers(output)[at];
    output.bytes()[at * sizeof(float)] ^= std::byte{1};
    const auto wrong = find_wrong(step, kRanks, output);
    ASSERT_TRUE(wrong);
    EXPECT_FALSE(wrong->is_guard);
    EXPECT_EQ(wrong->index, at);
    EXPECT_EQ(wrong->want, right);
    EXPECT_EQ(wrong->got, numbers(output)[at]);
  }
}

TEST(Integrity, bytes_beside_the_output_are_found) {
  const Step step{true, 100, Pattern::ones, 0};
  for (const ptrdiff_t at : {ptrdiff_t{-64}, ptrdiff_t{-1}, ptrdiff_t{1600}, ptrdiff_t{1663}}) {
    ranks::GuardedMemory output = right_output(step, kRanks);
    output.bytes().data()[at] = std::byte{0};
    const auto wrong = find_wrong(step, kRanks, output);
    ASSERT_TRUE(wrong) << at;
    EXPECT_TRUE(wrong->is_guard);
  }
}

TEST(Integrity, output_that_was_never_written_is_found) {
  for (const Step& step : steps_of({7, 100, kCount})) {
    ranks::GuardedMemory output = right_output(step, kRanks);
    output.fill_with_canary();
    EXPECT_TRUE(find_wrong(step, kRanks, output));
  }
}

TEST(Integrity, the_same_half_twice_is_found) {
  expect_found([](const Step&, ranks::GuardedMemory& output) {
    const size_t half = output.bytes().size() / 8 * 4;
    std::memcpy(output.bytes().data() + half, output.bytes().data(), half);
  });
}

TEST(Integrity, a_dropped_chunk_is_found) {
  expect_found([](const Step&, ranks::GuardedMemory& output) {  // the next ones moved up
    const auto bytes = output.bytes().subspan(3 * kChunk);
    std::memmove(bytes.data(), bytes.data() + kChunk, bytes.size() - kChunk);
  });
  expect_found([](const Step&, ranks::GuardedMemory& output) {  // its place was left as it was
    ranks::GuardedMemory before(output.bytes().size());
    before.fill_with_canary();
    std::memcpy(output.bytes().data() + 3 * kChunk, before.bytes().data() + 3 * kChunk, kChunk);
  });
}

TEST(Integrity, a_dropped_contribution_is_found) {
  const Step step{false, kCount, Pattern::ones, 0};  // even of ones
  ranks::GuardedMemory output = right_output(step, kRanks);
  numbers(output)[kCount / 2] -= 1;
  EXPECT_TRUE(find_wrong(step, kRanks, output));
}

TEST(Integrity, a_duplicated_chunk_is_found) {
  expect_found([](const Step&, ranks::GuardedMemory& output) {  // delivered twice, the others moved down
    const auto bytes = output.bytes().subspan(3 * kChunk);
    std::memmove(bytes.data() + kChunk, bytes.data(), bytes.size() - kChunk);
  });
  expect_found([](const Step& step, ranks::GuardedMemory& output) {  // added twice
    for (size_t i = kChunk; i < 2 * kChunk; ++i) {
      numbers(output)[i] += element(step.pattern, 1, step.round, i);
    }
  });
}

TEST(Integrity, two_swapped_chunks_are_found) {
  expect_found([](const Step&, ranks::GuardedMemory& output) {
    std::byte* const bytes = output.bytes().data();
    std::swap_ranges(bytes + 2 * kChunk, bytes + 3 * kChunk, bytes + 7 * kChunk);
  });
}

TEST(Integrity, output_of_the_round_before_is_found) {
  expect_found([](const Step& step, ranks::GuardedMemory& output) {
    Step before = step;
    before.round = step.round - 1;
    output = right_output(before, kRanks);
  });
}

TEST(Integrity, deadline_grows_with_the_bytes_of_all_ranks) {
  EXPECT_EQ(deadline_ms(0, 4), 10'000U);
  EXPECT_EQ(deadline_ms(25'000'000, 4), 14'000U);
}

}  // namespace
}  // namespace ringbolt::tools::check
