#include "map/view.h"

#include <nlohmann/json.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/topology.h"

namespace ringbolt::tools::map {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using State = CableFlow::State;

TEST(MapView, rates_have_three_figures) {
  EXPECT_EQ(rate_text(0), "0 B/s");
  EXPECT_EQ(rate_text(999), "999 B/s");
  EXPECT_EQ(rate_text(1000), "1.00 kB/s");
  EXPECT_EQ(rate_text(12'345'678), "12.3 MB/s");
  EXPECT_EQ(rate_text(999'999'999), "1.00 GB/s");
  EXPECT_EQ(rate_text(5e15), "5000 TB/s");
}

TEST(MapView, cut_cables_are_red_and_busy_ones_green) {
  const cluster::Cluster ring = *cluster::parse_topology("ring:4");
  std::vector<CableFlow> flows(4);
  flows[0].a_to_b_bytes_per_s = 1e9;
  flows[1].state = State::kCut;
  flows[1].n_cuts = 2;
  flows[2].errors = {{"rx_drops", 7}};
  const View view{ring, flows, {}, 1};
  const std::string plain = screen_text(view, false);
  EXPECT_THAT(plain, Not(HasSubstr("\x1b")));
  EXPECT_THAT(plain, HasSubstr("4 cables, 3 active"));
  EXPECT_THAT(plain, HasSubstr("1.00 GB/s"));
  EXPECT_THAT(plain, HasSubstr("rx_drops 7"));
  for (const char* name : {"  n0\n", "  n1\n", "  n2\n", "  n3  "}) {
    EXPECT_THAT(plain, HasSubstr(name));
  }
  const std::string coloured = screen_text(view, true);
  EXPECT_THAT(coloured, HasSubstr("\x1b[31mcut    \x1b[0m"));
  EXPECT_THAT(coloured, HasSubstr("\x1b[32mactive \x1b[0m"));
}

TEST(MapView, has_a_line_for_every_cable_where_a_picture_is_too_much) {
  const cluster::Cluster ring = *cluster::parse_topology("ring:40");
  const std::vector<CableFlow> flows(40);
  const std::string text = screen_text({ring, flows, {}, 1}, false);
  EXPECT_THAT(text, HasSubstr("n39:rdma_en2"));
  EXPECT_EQ(std::ranges::count(text, '\n'), 40 + 3);
}

TEST(MapView, draws_a_loopback_plug_without_a_picture) {
  const cluster::Cluster loop = *cluster::parse_topology("loop");
  EXPECT_THAT(screen_text({loop, std::vector<CableFlow>(1), {}, 1}, false), HasSubstr("active"));
}

TEST(MapView, json_is_one_line) {
  const cluster::Cluster line = *cluster::parse_topology("line:2");
  std::vector<CableFlow> flows(1);
  flows[0].state = State::kDown;
  flows[0].errors = {{"rx_drops", 7}};
  const std::string text = json_text({line, flows, {"n0: \"no\" answer"}, 0.5});
  EXPECT_EQ(text.find('\n'), text.size() - 1);
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json["cables"][0]["state"], "down");
  EXPECT_EQ(json["cables"][0]["errors"]["rx_drops"], 7);
  EXPECT_EQ(json["problems"][0], "n0: \"no\" answer");
}

TEST(MapView, what_does_not_fit_is_cut_off) {
  EXPECT_EQ(clipped("abc\nde\nf\n", 2, 2), "ab\nde\n");
  EXPECT_EQ(clipped("\x1b[31mabc\x1b[0mdef\n", 2, 9), "\x1b[31mab\x1b[0m\x1b[0m\n");
  EXPECT_EQ(clipped("\u28ff\u28ff\u28ff\n", 2, 9), "\u28ff\u28ff\n");
  EXPECT_EQ(clipped("", 2, 9), "");
  EXPECT_EQ(clipped("a\x1b[3", 9, 9), "a\x1b[3");
}

}  // namespace
}  // namespace ringbolt::tools::map
