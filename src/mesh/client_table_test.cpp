#include "mesh/client_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace ringbolt::mesh {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Writes down what it is given.
class Listener : public TurnClient {
 public:
  void on_chunk(const engine::ChunkHeader& header, const engine::Receipt& receipt) override {
    heard.push_back("chunk " + std::to_string(header.chunk) + " as " + std::to_string(receipt.id));
  }
  void on_word(const engine::ChunkHeader& header, std::span<const std::byte> bytes) override {
    heard.push_back("word " + std::to_string(header.chunk) + " of " + std::to_string(bytes.size()));
  }
  void on_rank_failed(uint32_t rank, const Status&) override { heard.push_back("lost " + std::to_string(rank)); }
  bool advance(uint64_t) override { return false; }
  bool is_busy() const override { return busy; }
  void end_turn() override { ++turns; }

  std::vector<std::string> heard;
  bool busy = false;
  int turns = 0;
};

engine::ChunkHeader header_of(uint16_t group, uint32_t chunk) {
  engine::ChunkHeader header;
  header.group = group;
  header.chunk = chunk;
  return header;
}

class ClientTableTest : public testing::Test {
 protected:
  ClientTable table_;
  Listener one_;
  Listener other_;
};

TEST_F(ClientTableTest, finds_the_client_of_a_channel_whatever_its_own_bit_says) {
  EXPECT_EQ(table_.find(0), nullptr);
  table_.attach(static_cast<Client&>(one_), {0, 9});
  table_.attach(static_cast<Client&>(other_), {10, 10});
  constexpr uint16_t kOwnBit = 0x8000;
  for (const uint16_t channel : {uint16_t{0}, uint16_t{9}}) {
    EXPECT_EQ(table_.find(channel), &one_);
    EXPECT_EQ(table_.find(channel | kOwnBit), &one_);
  }
  EXPECT_EQ(table_.find(10), &other_);
  EXPECT_EQ(table_.find(11), nullptr);
}

TEST_F(ClientTableTest, who_attaches_is_given_what_has_come_in_its_order) {
  table_.keep_chunk(header_of(7, 1), {41, {}});
  table_.keep_word(header_of(7 | 0x8000, 2), std::vector<std::byte>(3));
  table_.keep_chunk(header_of(8, 3), {43, {}});
  table_.keep_word(header_of(7, 4), {});
  table_.attach(static_cast<Client&>(one_), {0, 7});
  EXPECT_THAT(one_.heard, ElementsAre("chunk 1 as 41", "word 2 of 3", "word 4 of 0"));
  table_.attach(static_cast<Client&>(other_), {8, 8});
  EXPECT_THAT(other_.heard, ElementsAre("chunk 3 as 43"));
}

TEST_F(ClientTableTest, keeps_nothing_of_measured_cables_and_no_more_channels_than_may_be) {
  EXPECT_FALSE(table_.may_keep(kMeasuringChannel));
  for (uint16_t channel = 0; channel < ClientTable::kMostEarlyChannels; ++channel) {
    ASSERT_TRUE(table_.may_keep(channel));
    table_.keep_word(header_of(channel, 0), {});
  }
  EXPECT_FALSE(table_.may_keep(ClientTable::kMostEarlyChannels));
  EXPECT_TRUE(table_.may_keep(0)) << "as much as its sender has windows";
  table_.attach(static_cast<Client&>(one_), {0, 0});
  EXPECT_TRUE(table_.may_keep(ClientTable::kMostEarlyChannels));
}

TEST_F(ClientTableTest, only_who_asks_for_it_learns_of_turns) {
  table_.attach(static_cast<Client&>(one_), {0, 0});
  table_.attach(other_, {1, 1});
  table_.end_turn();
  EXPECT_EQ(one_.turns, 0);
  EXPECT_EQ(other_.turns, 1);
}

TEST_F(ClientTableTest, is_busy_while_any_client_is) {
  table_.attach(static_cast<Client&>(one_), {0, 0});
  table_.attach(static_cast<Client&>(other_), {1, 1});
  EXPECT_FALSE(table_.is_any_busy());
  other_.busy = true;
  EXPECT_TRUE(table_.is_any_busy());
  EXPECT_THAT(one_.heard, IsEmpty());
}

}  // namespace
}  // namespace ringbolt::mesh
