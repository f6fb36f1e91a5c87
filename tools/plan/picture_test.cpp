#include "plan/picture.h"

#include <algorithm>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fabric/builders.h"

namespace ringbolt::tools::plan {
namespace {

using ::testing::HasSubstr;

Cabling cabling_of(const fabric::Graph& graph, const std::string& prefix) {
  Cabling cabling;
  cabling.shape = "<&\">";
  const uint32_t n_ports = std::ranges::max(fabric::port_counts(graph));
  cabling.plan = fabric::make_plan(graph, n_ports);
  for (uint32_t node = 0; node < graph.n_nodes; ++node) {
    cabling.model.nodes.push_back({prefix + std::to_string(node), {}});
    for (uint32_t port = 0; port < n_ports; ++port) {
      cabling.model.nodes.back().ports.push_back({cluster::port_device(port)});
    }
  }
  return cabling;
}

TEST(Picture, has_every_name_whatever_its_length) {
  for (uint32_t n_nodes = 2; n_nodes <= kMostDrawnNodes; ++n_nodes) {
    for (const std::string& prefix : {std::string("n"), std::string(30, 'x')}) {
      const std::string text = picture(cabling_of(fabric::ring(n_nodes), prefix));
      size_t n_lines = 0;
      std::istringstream lines(text);
      for (std::string line; std::getline(lines, line); ++n_lines) {
        const auto n_columns = std::ranges::count_if(line, [](char c) { return (c & 0xc0) != 0x80; });
        EXPECT_LE(n_columns, 80) << n_nodes;
      }
      EXPECT_LE(n_lines, 25U);
      if (prefix == "n") {
        for (uint32_t node = 0; node < n_nodes; ++node) {
          EXPECT_THAT(text, HasSubstr("n" + std::to_string(node)));
        }
      }
    }
  }
}

TEST(Picture, is_left_out_where_it_would_be_a_black_spot) {
  EXPECT_EQ(picture(cabling_of(fabric::ring(kMostDrawnNodes + 1), "n")), "");
  EXPECT_EQ(picture(cabling_of(fabric::full_mesh(13), "n")), "");  // 78 cables
  EXPECT_NE(picture(cabling_of(fabric::full_mesh(12), "n")), "");
}

TEST(Drawing, escapes_what_a_path_may_hold) {
  const Cabling cabling = cabling_of(fabric::petersen(), "n");
  EXPECT_THAT(svg_text(cabling), HasSubstr("<title>____</title>"));
  EXPECT_THAT(dot_text(cabling), HasSubstr("graph \"____\""));
}

TEST(Drawing, bows_rails_apart) {
  fabric::Graph rails = fabric::ring(2);
  const std::string svg = svg_text(cabling_of(rails, "n"));
  const size_t first = svg.find("<path");
  const size_t second = svg.find("<path", first + 1);
  EXPECT_NE(svg.substr(first, svg.find("/>", first) - first), svg.substr(second, svg.find("/>", second) - second));
}

}  // namespace
}  // namespace ringbolt::tools::plan
