#include "fabric/cable_news.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace ringbolt::fabric {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(CableNews, lie_as_the_table_of_the_format_says) {
  std::vector<uint16_t> versions(0x0300);
  EXPECT_THAT(emit_news(versions, 7), IsEmpty());
  versions[0x0201] = 0x0403;
  EXPECT_THAT(emit_news(versions, 7), ElementsAre(std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}));
}

TEST(CableNews, begin_with_the_cables_that_work) {
  const std::vector<uint16_t> versions = {1, 0, 4, 3, 2};
  const auto news = parse_news(emit_news(versions, 0));
  ASSERT_TRUE(news);
  EXPECT_THAT(*news, ElementsAre(CableNews{2, 4}, CableNews{4, 2}, CableNews{0, 1}, CableNews{3, 3}));
}

TEST(CableNews, the_turn_of_all_comes_where_many_have_changed) {
  const std::vector<uint16_t> versions(2016, 2);  // 64 ranks in a full mesh
  std::set<uint16_t> told;
  for (uint64_t turn = 1; turn <= 4; ++turn) {
    const auto bytes = emit_news(versions, turn);
    EXPECT_EQ(bytes.size(), 4 * kMostNews);
    const auto news = parse_news(bytes);
    ASSERT_TRUE(news);
    for (const CableNews& one : *news) {
      told.insert(one.cable);
    }
  }
  EXPECT_EQ(told.size(), versions.size());
}

TEST(CableNews, half_of_one_is_refused) {
  const std::vector<std::byte> bytes(6);
  EXPECT_FALSE(parse_news(bytes));
}

}  // namespace
}  // namespace ringbolt::fabric
