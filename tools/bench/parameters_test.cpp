#include "bench/parameters.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "bench/measure.h"
#include "failure.h"

namespace ringbolt::tools::bench {
namespace {

using ranks::Collective;

BenchOptions options_of(const std::string& collective) {
  BenchOptions options;
  options.collective = collective;
  return options;
}

TEST(Parameters, sizes) {
  EXPECT_EQ(bytes_of("-b", "8"), 8U);
  EXPECT_EQ(bytes_of("-b", "64K"), 65'536U);
  EXPECT_EQ(bytes_of("-b", "3m"), 3U << 20U);
  EXPECT_EQ(bytes_of("-b", "64G"), uint64_t{1} << 36U);
  for (const char* bad : {"", "x", "-1", "1T", "1KB", "65G", "99999999999G"}) {
    EXPECT_THROW(bytes_of("-b", bad), UsageError) << bad;
  }
  for (const char* large : {"65G", "68719476737", "99999999999G", "99999999999999999999"}) {
    try {
      bytes_of("-b", large);
      ADD_FAILURE() << "accepted: " << large;
    } catch (const UsageError& error) {
      EXPECT_EQ(std::string(error.what()), fmt::format("-b {}: 64 GiB is the most", large));
    }
  }
  EXPECT_EQ(sizes_of(8, 128, 0, 4), (std::vector<uint64_t>{8, 32, 128}));
  EXPECT_EQ(sizes_of(8, 30, 10, 4), (std::vector<uint64_t>{8, 18, 28}));
  EXPECT_EQ(sizes_of(0, 30, 10, 2), (std::vector<uint64_t>{0, 10, 20, 30}));
  EXPECT_EQ(sizes_of(0, 0, 0, 2), (std::vector<uint64_t>{0}));
  EXPECT_EQ(sizes_of(0, 0, 8, 2), (std::vector<uint64_t>{0}));
  EXPECT_THROW(sizes_of(0, 30, 0, 2), UsageError);  // 0 again and again
  EXPECT_EQ(sizes_of(8, 8 * 4096, 8, 2).size(), 4096U);
  EXPECT_THROW(sizes_of(8, 8 * 4097, 8, 2), UsageError);
  EXPECT_THROW(sizes_of(0, uint64_t{1} << 36U, 1, 2), UsageError);
  EXPECT_EQ(sizes_of(1, uint64_t{1} << 36U, 0, 2).size(), 37U);
  EXPECT_EQ(sizes_of(5, 5, 0, 2), (std::vector<uint64_t>{5}));
}

TEST(Parameters, what_makes_no_sense_is_refused) {
  EXPECT_THROW(parameters_of(options_of("sum")), UsageError);
  EXPECT_THROW(parameters_of(options_of("all_gatherv")), UsageError);
  for (const auto& change : std::vector<void (*)(BenchOptions&)>{
           [](BenchOptions& one) { one.type = "int7"; }, [](BenchOptions& one) { one.reduction = "xor"; },
           [](BenchOptions& one) { one.root = "x"; }, [](BenchOptions& one) { one.check = "x"; },
           [](BenchOptions& one) { one.algorithm = "magic"; },
           [](BenchOptions& one) { one.least = "2K", one.most = "1K"; }}) {
    BenchOptions options = options_of("broadcast");
    const bool is_reduction = [&] {
      BenchOptions changed = options;
      change(changed);
      return changed.reduction != options.reduction;
    }();
    options.collective = is_reduction ? "reduce" : "broadcast";
    change(options);
    EXPECT_THROW(parameters_of(options), UsageError);
  }
}

TEST(Parameters, of_a_barrier_have_no_sizes) {
  BenchOptions options = options_of("barrier");
  options.least = "0";
  options.most = "1M";
  EXPECT_EQ(parameters_of(options).sizes, std::vector<uint64_t>{0});
  options.collective = "reduce";
  EXPECT_THROW(parameters_of(options), UsageError);
}

TEST(Parameters, bare_check_is_yes) {
  for (const auto& [text, is_checked] : {std::pair{"", true}, {"{}", true}, {"1", true}, {"5", true}, {"0", false}}) {
    BenchOptions options = options_of("barrier");
    options.check = text;
    EXPECT_EQ(parameters_of(options).is_checked, is_checked) << text;
  }
}

TEST(Parameters, counts_and_factors_are_those_of_nccl_tests) {
  EXPECT_EQ(count_of(Collective::all_reduce, 1026, 4, 5), 256U);
  EXPECT_EQ(count_of(Collective::all_gather, 1026, 4, 5), 51U);
  EXPECT_EQ(counted_bytes(Collective::all_gather, 51, 4, 5), 1020U);
  EXPECT_EQ(counted_bytes(Collective::reduce, 51, 4, 5), 204U);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::all_reduce, 4), 1.5);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::reduce_scatter, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::all_gather, 2), 0.5);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::all_to_all, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::broadcast, 4), 1);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::reduce, 4), 1);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::send_recv, 4), 1);
}

TEST(Statistics, of_known_times) {
  std::vector<uint64_t> times;
  for (uint64_t i = 100; i > 0; --i) {
    times.push_back(i * 1000);
  }
  const Statistics of_all = statistics_of(times);
  EXPECT_DOUBLE_EQ(of_all.min_us, 1);
  EXPECT_DOUBLE_EQ(of_all.max_us, 100);
  EXPECT_DOUBLE_EQ(of_all.avg_us, 50.5);
  EXPECT_DOUBLE_EQ(of_all.p50_us, 50);
  EXPECT_DOUBLE_EQ(of_all.p95_us, 95);
  EXPECT_DOUBLE_EQ(of_all.p99_us, 99);
  EXPECT_NEAR(of_all.stdev_us, 29.011, 0.001);
  EXPECT_NEAR(of_all.cv_pct, 57.448, 0.001);
  const Statistics of_one = statistics_of({1500});
  EXPECT_EQ(of_one, (Statistics{1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 0, 0}));
}

TEST(Statistics, slowest_rank_counts_and_skew_is_between_medians) {
  const std::vector<std::vector<uint64_t>> times{{1000, 9000, 2000}, {3000, 4000, 1000}};
  EXPECT_EQ(slowest_of(times), (std::vector<uint64_t>{3000, 9000, 2000}));
  EXPECT_DOUBLE_EQ(skew_us(times), 1);
}

}  // namespace
}  // namespace ringbolt::tools::bench
