#include "heat_map.h"

#include <gtest/gtest.h>

#include "cluster/topology.h"
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

TEST(HeatMap, nothing_at_all_is_the_worst_bandwidth_and_leaves_the_others_theirs) {
  const cluster::Cluster model = *cluster::parse_topology("line:3");
  const HeatMap map = bandwidth_map(
      model, {direction(model, 0, true, State::kMeasured, 1, 0), direction(model, 0, false, State::kMeasured, 1, 80),
              direction(model, 1, true, State::kMeasured, 1, 8)});
  EXPECT_EQ(map.at(0, 1).heat, 1);
  EXPECT_EQ(map.at(1, 0).heat, 0);
  EXPECT_EQ(map.at(1, 2).heat, 1);
  EXPECT_NE(terminal_text(map, true).find("0.00"), std::string::npos);
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

TEST(HeatMap, relayed_pairs_have_their_hops_and_show_where_a_cable_is_cut) {
  const cluster::Cluster model = *cluster::parse_topology("line:3");
  Direction relayed;
  relayed.cable = Direction::kNoCable;
  relayed.from.node = 0;
  relayed.to.node = 2;
  relayed.hops = 2;
  relayed.state = State::kMeasured;
  relayed.latency_us = 2.5;
  std::vector<Direction> directions = {relayed, direction(model, 0, true, State::kCut, 0, 0), relayed};
  directions[2].to.node = 1;
  EXPECT_EQ(
      terminal_text(latency_map(model, directions), false),
      "Latency: half the median round trip of 8 bytes (\u00b5s); row sends to column; \u00b2 \u00b3 ...: relayed, so "
      "many hops\n"
      "             n0      n1      n2\n"
      "     n0       \u00b7   2.50\u00b2   2.50\u00b2\n"
      "     n1       \u00b7       \u00b7       \u00b7\n"
      "     n2       \u00b7       \u00b7       \u00b7\n");
  relayed.state = State::kUnreachable;
  EXPECT_EQ(latency_map(model, {relayed}).at(0, 2).cell, HeatMap::Cell::kNothing);
}

TEST(HeatMap, hops_are_raised_digits) {
  EXPECT_EQ(hops_text(1), "");
  EXPECT_EQ(hops_text(3), "\u00b3");
  EXPECT_EQ(hops_text(10), "\u00b9\u2070");
}

TEST(HeatMap, three_figures_matter) {
  EXPECT_EQ(figure_text(0.4149), "0.41");
  EXPECT_EQ(figure_text(9.994), "9.99");
  EXPECT_EQ(figure_text(12.34), "12.3");
  EXPECT_EQ(figure_text(1234.5), "1234");
}

TEST(HtmlReport, says_what_the_figures_are_of) {
  const cluster::Cluster model = *cluster::parse_topology("line:2");
  const std::string page = html_report({"c", "8 bytes", "Between machines <here>."}, model, {});
  EXPECT_NE(page.find("8 bytes<br>Between machines &lt;here&gt;.</p>"), std::string::npos) << page;
  EXPECT_EQ(page.find("mulated"), std::string::npos) << "not every cluster is";
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
