#include "mesh/courier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "engine/loop_fabric_test_support.h"

namespace ringbolt::mesh {
namespace {

using ::testing::ElementsAre;
using Bytes = std::vector<std::byte>;

/// What arrives at one rank, by source.
class Inbox : public Courier::Sink {
 public:
  void on_packet(uint32_t source, std::span<const std::byte> packet) override {
    packets[source].emplace_back(packet.begin(), packet.end());
  }
  void on_end_of_packets() override { ++n_ends; }

  std::map<uint32_t, std::vector<Bytes>> packets;
  int n_ends = 0;
};

/// Hands a rank's chunks and words to its courier, as the mesh does.
class Rank : public engine::Receiver {
 public:
  Rank(engine::Engine& engine, uint32_t rank, uint32_t n_ranks) : courier(engine, rank, n_ranks, inbox) {
    engine.set_receiver(*this);
  }
  void on_chunk(const engine::ChunkHeader& header, const engine::Receipt& receipt) override {
    courier.on_chunk(header, receipt);
  }
  void on_word(const engine::ChunkHeader& header, std::span<const std::byte> bytes) override {
    courier.on_word(header, bytes);
  }
  void on_beat(uint32_t, std::span<const std::byte>) override {}
  void on_cable_failed(uint32_t) override {}

  Inbox inbox;
  Courier courier;
};

Bytes packet_of(uint32_t number, size_t length) {
  Bytes packet(length);
  for (size_t i = 0; i < length; ++i) {
    packet[i] = static_cast<std::byte>(number * 13 + i * 7);
  }
  return packet;
}

/// Ranks on a line: what the outer ones send each other is relayed.
class CourierTest : public testing::Test {
 protected:
  static constexpr uint32_t kRanks = 3;
  CourierTest() : fabric_(kRanks, {{0, 1}, {1, 2}}) {
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      ranks_.push_back(std::make_unique<Rank>(fabric_.engine(rank), rank, kRanks));
    }
  }
  bool run_until(const std::function<bool()>& is_done) {
    return fabric_.run_until([&] {
      for (const auto& rank : ranks_) {
        rank->courier.end_turn();
      }
      return is_done();
    });
  }
  Inbox& inbox(uint32_t rank) { return ranks_[rank]->inbox; }
  Courier& courier(uint32_t rank) { return ranks_[rank]->courier; }

  engine::test::LoopFabric fabric_;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

TEST_F(CourierTest, packets_arrive_in_order_whatever_their_sizes) {
  constexpr uint32_t kPackets = 400;
  std::vector<Bytes> sent;
  for (uint32_t i = 0; i < kPackets; ++i) {
    sent.push_back(packet_of(i, i % 5 == 0 ? Courier::kMostPacketBytes : i % 3 == 0 ? 0 : 17 * (i % 200)));
    ASSERT_TRUE(courier(0).send(2, sent.back()));
  }
  courier(0).flush();
  ASSERT_TRUE(run_until([&] { return inbox(2).packets[0].size() == kPackets; }));
  EXPECT_EQ(inbox(2).packets[0], sent);
  EXPECT_GT(inbox(2).n_ends, 0);
  EXPECT_TRUE(inbox(1).packets.empty()) << "a relay takes no part";
  EXPECT_EQ(courier(0).counts().packets_out, kPackets);
  EXPECT_EQ(courier(2).counts().packets_in, kPackets);
  EXPECT_EQ(courier(2).counts().bytes_in, courier(0).counts().bytes_out);
}

TEST_F(CourierTest, all_pairs_at_once) {
  constexpr uint32_t kPackets = 200;
  for (uint32_t i = 0; i < kPackets; ++i) {
    for (uint32_t from = 0; from < kRanks; ++from) {
      for (uint32_t to = 0; to < kRanks; ++to) {
        ASSERT_TRUE(from == to || courier(from).send(to, packet_of(from * 100 + i, 3000)));
      }
    }
  }
  ASSERT_TRUE(run_until([&] {
    for (uint32_t to = 0; to < kRanks; ++to) {
      for (uint32_t from = 0; from < kRanks; ++from) {
        if (from != to && inbox(to).packets[from].size() < kPackets) {
          return false;
        }
      }
    }
    return true;
  }));
  for (uint32_t i = 0; i < kPackets; ++i) {
    EXPECT_EQ(inbox(1).packets[2][i], packet_of(200 + i, 3000));
    EXPECT_EQ(inbox(0).packets[2][i], packet_of(200 + i, 3000));
  }
}

TEST_F(CourierTest, small_packets_share_a_chunk) {
  for (uint32_t i = 0; i < 1000; ++i) {
    ASSERT_TRUE(courier(0).send(1, packet_of(i, 32)));
  }
  const uint64_t before = fabric_.engine(0).counts().chunks_sent;
  ASSERT_TRUE(run_until([&] { return inbox(1).packets[0].size() == 1000; }));
  EXPECT_EQ(fabric_.engine(0).counts().chunks_sent - before, 1U);
}

TEST_F(CourierTest, what_a_rank_does_not_take_stays_within_the_window) {
  const Bytes packet = packet_of(1, Courier::kMostPacketBytes);
  size_t n_taken = 0;
  while (courier(0).send(2, packet)) {
    ++n_taken;
  }
  EXPECT_EQ(n_taken, Courier::kMostWaitingBytes / (Courier::kMostPacketBytes + 4));
  EXPECT_EQ(courier(0).counts().dropped_full, 1U);
  courier(0).flush();
  EXPECT_LE(fabric_.engine(0).n_unacknowledged(), Courier::kWindowChunks);
  ASSERT_TRUE(courier(0).send(1, packet)) << "what waits for one rank is no other one's trouble";
  ASSERT_TRUE(run_until([&] { return inbox(2).packets[0].size() == n_taken && inbox(1).packets[0].size() == 1; }));
}

TEST_F(CourierTest, a_rank_that_is_gone_takes_nothing_and_holds_nobody_up) {
  ASSERT_TRUE(courier(0).send(2, packet_of(1, 100)));
  courier(0).give_up(2);
  EXPECT_FALSE(courier(0).send(2, packet_of(2, 100)));
  EXPECT_TRUE(courier(0).is_gone(2));
  EXPECT_EQ(courier(0).counts().dropped_gone, 1U);
  ASSERT_TRUE(courier(0).send(1, packet_of(3, 100)));
  ASSERT_TRUE(run_until([&] { return inbox(1).packets[0].size() == 1; }));
  EXPECT_TRUE(inbox(2).packets.empty());
}

/// A chunk of a courier, made by hand.
class CourierOffence : public CourierTest {
 protected:
  void send_raw(const Bytes& bytes, uint32_t chunk) {
    const auto slot = fabric_.engine(0).take_slot(static_cast<uint32_t>(bytes.size()));
    ASSERT_TRUE(slot);
    std::copy(bytes.begin(), bytes.end(), slot->bytes);
    fabric_.engine(0).send(slot->id, static_cast<uint32_t>(bytes.size()),
                           {1, {}, kCourierChannels.first, 0, 0, chunk, 0});
  }
  static Bytes chunk_of(const std::vector<Bytes>& packets) {
    Bytes chunk;
    for (const Bytes& packet : packets) {
      for (int i = 0; i < 4; ++i) {
        chunk.push_back(static_cast<std::byte>(packet.size() >> (8 * i)));
      }
      chunk.insert(chunk.end(), packet.begin(), packet.end());
    }
    return chunk;
  }
};

TEST_F(CourierOffence, chunks_out_of_order_wait_for_those_before_them) {
  send_raw(chunk_of({packet_of(3, 10)}), 2);
  send_raw(chunk_of({packet_of(2, 10)}), 1);
  send_raw(chunk_of({packet_of(1, 10)}), 0);
  ASSERT_TRUE(run_until([&] { return inbox(1).packets[0].size() == 3; }));
  EXPECT_THAT(inbox(1).packets[0], ElementsAre(packet_of(1, 10), packet_of(2, 10), packet_of(3, 10)));
}

TEST_F(CourierOffence, a_chunk_whose_lengths_lie_is_cut_off_where_it_does) {
  Bytes chunk = chunk_of({packet_of(1, 10), packet_of(2, 10)});
  chunk[14] = std::byte{200};  // of the second: more than there is
  send_raw(chunk, 0);
  send_raw(chunk_of({packet_of(3, 10)}), 1);
  ASSERT_TRUE(run_until([&] { return inbox(1).packets[0].size() == 2; }));
  EXPECT_THAT(inbox(1).packets[0], ElementsAre(packet_of(1, 10), packet_of(3, 10)));
  EXPECT_EQ(courier(1).counts().malformed, 1U);
}

TEST_F(CourierOffence, a_chunk_beyond_the_window_is_not_kept) {
  send_raw(chunk_of({packet_of(9, 10)}), Courier::kWindowChunks);
  send_raw(chunk_of({packet_of(1, 10)}), 0);
  ASSERT_TRUE(run_until([&] { return inbox(1).packets[0].size() == 1; }));
  EXPECT_THAT(inbox(1).packets[0], ElementsAre(packet_of(1, 10)));
}

}  // namespace
}  // namespace ringbolt::mesh
