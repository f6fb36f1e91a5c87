#include "port_counts.h"

#include <gtest/gtest.h>

#include "cluster/counter_page.h"

namespace ringbolt::tools {
namespace {

PortCounts port(const std::string& device, uint64_t first) {
  PortCounts one{"lab", "left", device, "cut", 40, {}};
  for (size_t i = 0; i < cluster::all_counters().size(); ++i) {
    one.values.push_back(first + i);
  }
  return one;
}

TEST(PortCounts, come_back_from_their_text) {
  for (size_t count = 0; count < 4; ++count) {
    std::vector<PortCounts> all;
    for (size_t i = 0; i < count; ++i) {
      all.push_back(port("rdma_en" + std::to_string(i), 1000 * i));
    }
    const auto found = parse_counts(counts_json(all));
    ASSERT_TRUE(found);
    ASSERT_EQ(found->size(), count);
    for (size_t i = 0; i < count; ++i) {
      EXPECT_EQ((*found)[i].device, all[i].device);
      EXPECT_EQ((*found)[i].node, "left");
      EXPECT_EQ((*found)[i].state, "cut");
      EXPECT_EQ((*found)[i].values, all[i].values);
    }
  }
}

TEST(PortCounts, what_is_no_such_text_is_told_apart_from_no_ports) {
  for (const char* text : {"", "{}", "[]", "{\"ports\":[{}]}", "{\"ports\":[{\"cluster\":7}]}", "{\"ports\":"}) {
    EXPECT_FALSE(parse_counts(text)) << text;
  }
}

}  // namespace
}  // namespace ringbolt::tools
