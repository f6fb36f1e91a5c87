#include "perf/histogram.h"

#include <gtest/gtest.h>

namespace ringbolt::tools::perf {
namespace {

TEST(Histogram, nothing_is_all_zero) {
  const Histogram empty;
  EXPECT_EQ(empty.count(), 0U);
  EXPECT_EQ(empty.least_ns(), 0U);
  EXPECT_EQ(empty.most_ns(), 0U);
  EXPECT_EQ(empty.percentile_ns(0.5), 0);
  EXPECT_TRUE(empty.bars().empty());
}

TEST(Histogram, one_time_is_every_percentile) {
  Histogram one;
  one.add(12345);
  for (const double share : {0.0, 0.5, 0.999, 1.0}) {
    EXPECT_EQ(one.percentile_ns(share), 12345) << share;
  }
  EXPECT_EQ(one.mean_ns(), 12345);
}

TEST(Histogram, short_times_are_exact) {
  Histogram times;
  for (uint64_t ns = 1; ns <= 100; ++ns) {
    times.add(ns);
  }
  EXPECT_EQ(times.percentile_ns(0.5), 50);
  EXPECT_EQ(times.percentile_ns(0.99), 99);
  EXPECT_EQ(times.percentile_ns(0.999), 100);
  EXPECT_EQ(times.percentile_ns(1), 100);
  EXPECT_EQ(times.least_ns(), 1U);
  EXPECT_EQ(times.most_ns(), 100U);
}

TEST(Histogram, long_times_are_off_by_less_than_a_hundredth) {
  for (uint64_t ns = 1; ns < uint64_t{1} << 39U; ns = ns * 3 / 2 + 1) {
    Histogram times;
    times.add(ns);
    times.add(ns);
    times.add(4 * ns);  // so that the middle of the bucket is not clamped to the only time
    times.add(0);
    const double found = times.percentile_ns(0.5);
    EXPECT_NEAR(found, static_cast<double>(ns), 0.008 * static_cast<double>(ns)) << ns;
  }
}

TEST(Histogram, beyond_the_last_bucket_nothing_is_lost) {
  Histogram times;
  times.add(~uint64_t{0} >> 8U);
  EXPECT_EQ(times.count(), 1U);
  EXPECT_EQ(times.most_ns(), ~uint64_t{0} >> 8U);
  EXPECT_EQ(times.bars().size(), 1U);
}

TEST(Histogram, bars_cover_all_without_gaps) {
  Histogram times;
  for (const uint64_t ns : {300U, 301U, 900U, 5000U}) {
    times.add(ns);
  }
  const auto bars = times.bars();
  uint64_t count = 0;
  for (size_t i = 0; i < bars.size(); ++i) {
    count += bars[i].count;
    EXPECT_EQ(i == 0 ? bars[0].from_ns : bars[i - 1].to_ns, bars[i].from_ns);
  }
  EXPECT_EQ(count, 4U);
  EXPECT_LE(bars.front().from_ns, 300U);
  EXPECT_GT(bars.back().to_ns, 5000U);
  EXPECT_EQ(bars.front().count, 2U);
}

}  // namespace
}  // namespace ringbolt::tools::perf
