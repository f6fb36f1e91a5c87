#include "perf/result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pair/values.h"

namespace ringbolt::tools::perf {
namespace {

using testing::HasSubstr;
using testing::Not;

/// 1 Gb/s of goodput and 4 Gb/s of completions.
BandwidthFigures figures(const char* by) {
  return {by, true, 1000, 0, 12'500'000, 100'000'000, 25'000'000, 12'500'000};
}

Result sample() {
  Histogram histogram;
  for (uint64_t ns = 1000; ns < 3000; ++ns) {
    histogram.add(ns);
  }
  Result result;
  result.parameters.sizes = {12500};
  result.parameters.has_latency = true;
  result.mtu_bytes = 4096;
  result.line_rate_gbps = 40;
  result.ends = {{"client", "rdma_en2", "/x/libibverbs.so.1", 40, true, 100, 13'000'000}, {"server", "b", "c", 40}};
  result.rows = {{12500, latency_figures(histogram, 3, true), {figures("client")}}};
  return result;
}

TEST(Result, survives_json) {
  const std::string line = to_line(sample());
  EXPECT_EQ(pair::value_in<Result>(line), sample());
  EXPECT_EQ(line.find('\n'), std::string::npos);
}

TEST(Result, other_text_is_no_result) {
  for (const char* text : {"", "{", "null", "[]", "{}", "{\"parameters\": {}}"}) {
    EXPECT_FALSE(pair::value_in<Result>(text)) << text;
  }
}

TEST(Result, half_a_round_trip_is_half_of_everything) {
  Histogram histogram;
  histogram.add(2000);
  const LatencyFigures half = latency_figures(histogram, 0, true);
  EXPECT_EQ(half.p50_us, 1);
  EXPECT_EQ(half.least_us, 1);
  EXPECT_EQ(half.most_us, 1);
  EXPECT_EQ(latency_figures(histogram, 0, false).p999_us, 2);
}

TEST(Result, figures_are_bits_over_time) {
  EXPECT_DOUBLE_EQ(figures("client").goodput_gbps(), 1);
  EXPECT_DOUBLE_EQ(figures("client").tx_cqe_rate_gbps(), 4);
  EXPECT_DOUBLE_EQ(figures("client").messages_per_s(), 10'000);
  EXPECT_EQ(BandwidthFigures{}.goodput_gbps(), 0);
}

TEST(Result, within_the_line_rate_there_is_no_problem) {
  EXPECT_TRUE(problems_of(sample()).empty());
  EXPECT_THAT(result_text(sample(), {}), Not(HasSubstr("INVALID")));
}

TEST(Result, what_no_line_can_carry_is_invalid) {
  Result result = sample();
  result.line_rate_gbps = 2;
  EXPECT_EQ(problems_of(result).size(), 1U);  // the completions
  EXPECT_THAT(result_text(result, {}), HasSubstr("tx_cqe_rate INVALID(above line rate)"));
  EXPECT_THAT(result_text(result, {}), Not(HasSubstr("goodput INVALID")));
  result.line_rate_gbps = 0.5;
  EXPECT_EQ(problems_of(result).size(), 2U);
  EXPECT_THAT(result_text(result, {}), HasSubstr("goodput INVALID(above line rate)"));
  result.line_rate_gbps = 0;
  EXPECT_TRUE(problems_of(result).empty());
}

TEST(Result, counters_that_stand_still_are_a_problem) {
  Result result = sample();
  result.ends[0].transmitted_bytes = 0;
  EXPECT_TRUE(problems_of(result).empty());  // it has received
  result.ends[0].received_bytes = 0;
  ASSERT_EQ(problems_of(result).size(), 1U);
  EXPECT_THAT(problems_of(result)[0], HasSubstr("did not move"));
}

TEST(Result, counters_must_cover_what_was_verified) {
  Result result = sample();
  result.ends[0].received_bytes = figures("client").verified_bytes / 2 - 101;
  ASSERT_EQ(problems_of(result).size(), 1U);
  EXPECT_THAT(problems_of(result)[0], HasSubstr("moved by 6249999 bytes while 12500000 bytes were verified"));
  ++result.ends[0].received_bytes;
  EXPECT_TRUE(problems_of(result).empty());
}

TEST(Result, missing_counters_are_a_problem_only_when_asked_for) {
  Result result = sample();
  EXPECT_THAT(result_text(result, {}), HasSubstr("port counters: not measured"));
  result.needs_counters = true;
  ASSERT_EQ(problems_of(result).size(), 1U);
  EXPECT_THAT(problems_of(result)[0], HasSubstr("--require-counters"));
}

TEST(Result, nothing_that_arrived_is_a_problem) {
  Result result = sample();
  result.rows[0].bandwidth[0].messages = 0;
  EXPECT_EQ(problems_of(result).size(), 1U);
}

TEST(Result, table_says_unit_sum_and_what_was_not_verified) {
  Result result = sample();
  result.rows[0].bandwidth.push_back(figures("server"));
  result.rows[0].bandwidth[0].is_verified = false;
  const std::string gbits = result_text(result, {true, true});
  EXPECT_THAT(gbits, HasSubstr("GOODPUT_Gb/s"));
  EXPECT_THAT(gbits, HasSubstr("2.000  (sum of both directions)"));
  EXPECT_THAT(gbits, HasSubstr("not verified"));
  EXPECT_THAT(gbits, HasSubstr("Histogram of 12500 bytes"));
  EXPECT_THAT(result_text(result, {}), HasSubstr("GOODPUT_MiB/s"));
  EXPECT_THAT(result_text(result, {}), HasSubstr("119.209"));  // 10^9 / 8 / 2^20
}

TEST(Result, page_is_whole_and_escapes) {
  Result result = sample();
  result.ends[0].device = "<b>";
  const std::string page = result_page(result);
  EXPECT_THAT(page, HasSubstr("<svg"));
  EXPECT_THAT(page, HasSubstr("&lt;b&gt;"));
  EXPECT_THAT(page, Not(HasSubstr("<b>")));
  EXPECT_THAT(page, HasSubstr("</html>"));
}

}  // namespace
}  // namespace ringbolt::tools::perf
