#include "heat_map.h"

#include <gtest/gtest.h>

#include "cluster/topology.h"
#include "html_report.h"
#include "node_environment.h"

namespace ringbolt::tools {
namespace {

using State = Direction::State;

Direction direction(const cluster::Cluster& model, uint32_t cable, bool is_forward, State state, double latency_us,
                    double bandwidth_gbps) {
  Direction one;
  one.cable = cable;
  one.from = is_forward ? model.cables[cable].a : model.cables[cable].b;
  one.to = is_forward ? model.cables[cable].b : model.cables[cable].a;
  one.state = state;
  one.latency_us = latency_us;
  one.bandwidth_gbps = bandwidth_gbps;
  return one;
}

TEST(HeatMap, draws_figures_cuts_and_failures) {
  const cluster::Cluster model = *cluster::parse_topology("line:3");
  const std::vector<Direction> directions = {
      direction(model, 0, true, State::kMeasured, 0.5, 80), direction(model, 0, false, State::kMeasured, 1.25, 8),
      direction(model, 1, true, State::kCut, 0, 0), direction(model, 1, false, State::kFailed, 0, 0)};
  EXPECT_EQ(terminal_text(latency_map(model, directions), false),
            "Latency: half the median round trip of 8 bytes (\u00b5s); row sends to column\n"
            "             n0      n1      n2\n"
            "     n0       \u00b7    0.50       \u00b7\n"
            "     n1    1.25       \u00b7     cut\n"
            "     n2       \u00b7  FAILED       \u00b7\n");
  const HeatMap bandwidth = bandwidth_map(model, directions);
  EXPECT_EQ(bandwidth.at(0, 1).heat, 0);
  EXPECT_EQ(bandwidth.at(1, 0).heat, 1);
  EXPECT_EQ(latency_map(model, directions).at(0, 1).heat, 0);
}

TEST(HeatMap, noise_gets_no_colour) {
  const cluster::Cluster model = *cluster::parse_topology("line:2");
  const HeatMap map = latency_map(model, {direction(model, 0, true, State::kMeasured, 1.00, 1),
                                          direction(model, 0, false, State::kMeasured, 1.05, 1)});
  EXPECT_LT(map.at(1, 0).heat, 0.2);
}

TEST(HeatMap, the_better_of_parallel_cables_counts_and_trouble_shows_before_cuts) {
  const cluster::Cluster model = *cluster::parse_topology("ring:2");
  std::vector<Direction> directions = {direction(model, 0, true, State::kMeasured, 3, 10),
                                       direction(model, 1, false, State::kMeasured, 2, 20)};
  EXPECT_EQ(latency_map(model, directions).at(0, 1).figure, 2);
  EXPECT_EQ(bandwidth_map(model, directions).at(0, 1).figure, 20);
  directions[0].state = State::kCut;
  directions[1].state = State::kFailed;
  EXPECT_EQ(latency_map(model, directions).at(0, 1).cell, HeatMap::Cell::kFailed);
}

TEST(HeatMap, three_figures_matter) {
  EXPECT_EQ(figure_text(0.4149), "0.41");
  EXPECT_EQ(figure_text(9.994), "9.99");
  EXPECT_EQ(figure_text(12.34), "12.3");
  EXPECT_EQ(figure_text(1234.5), "1234");
}

TEST(HtmlReport, escapes_what_means_something) {
  EXPECT_EQ(html_escaped("<a href=\"x\">&'"), "&lt;a href=&quot;x&quot;&gt;&amp;'");
}

TEST(NodeEnvironment, quotes_for_shells) {
  EXPECT_EQ(shell_quoted(""), "''");
  EXPECT_EQ(shell_quoted("a b$(c)"), "'a b$(c)'");
  EXPECT_EQ(shell_quoted("it's"), "'it'\\''s'");
}

TEST(NodeEnvironment, lists_have_an_entry_once) {
  EXPECT_EQ(with_first("", "/x"), "/x");
  EXPECT_EQ(with_first("/a:/x::/b", "/x"), "/x:/a:/b");
  EXPECT_EQ(with_last("/x:/a:/x", "/x"), "/a:/x");
}

}  // namespace
}  // namespace ringbolt::tools
