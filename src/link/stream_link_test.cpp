#include "link/stream_link.h"

#include <gtest/gtest.h>

#include "link/stream_test_support.h"

namespace ringbolt::link::stream_test {
namespace {

TEST(StreamLink, carries_packets_over_a_stream_that_behaves) {
  World world({.seed = 1, .packets = 1000});
  EXPECT_TRUE(world.run());
  for (unsigned side = 0; side < 2; ++side) {
    const auto counters = world.end(side).counters();
    EXPECT_EQ(counters.packets_in, 1000U);
    EXPECT_EQ(counters.packets_out, 1000U);
    EXPECT_EQ(counters.repeated_packets, 0U);
    EXPECT_EQ(counters.duplicate_packets, 0U);
    EXPECT_EQ(counters.ended_epochs, 0U);
    EXPECT_EQ(world.end(side).peer_greeting().size(), (1 - side) * 40);
  }
}

TEST(StreamLink, every_packet_arrives_once_in_order_whatever_a_stream_does) {
  for (uint64_t seed = 1; seed <= 375; ++seed) {
    World world({.seed = seed, .window_packets = 8, .faults = 12, .packets = 60});
    ASSERT_TRUE(world.run()) << "seed " << seed << ": " << world.arrived(0) << ", " << world.arrived(1);
  }
}

TEST(StreamLink, every_packet_arrives_once_in_order_whatever_rails_do) {
  for (uint64_t seed = 1; seed <= 250; ++seed) {
    const size_t rails = 2 + seed % 3;
    World world({.seed = seed, .rails = rails, .window_frames = 4, .pipe_bytes = 9'000, .faults = 20, .packets = 100});
    ASSERT_TRUE(world.run()) << "seed " << seed << ": " << world.arrived(0) << ", " << world.arrived(1);
  }
}

TEST(StreamLink, short_packets_too) {
  for (uint64_t seed = 1; seed <= 125; ++seed) {
    World world({.seed = seed, .rails = 2, .window_packets = 64, .faults = 20, .packets = 400, .most_bytes = 40});
    ASSERT_TRUE(world.run()) << "seed " << seed << ": " << world.arrived(0) << ", " << world.arrived(1);
  }
}

TEST(StreamLink, goes_on_over_the_other_rail) {
  World world({.seed = 3, .rails = 2, .packets = 300});
  while (world.arrived(0) < 100) {
    world.turn();
  }
  // One rail is gone for good: reopening is what turn() does, so it is not called any more.
  world.cut(1);
  for (unsigned i = 0; i < 100'000 && (world.arrived(0) < 300 || world.arrived(1) < 300); ++i) {
    world.now_ns() += 100'000;
    world.move(i % 2);
  }
  EXPECT_EQ(world.arrived(0), 300U);
  EXPECT_EQ(world.arrived(1), 300U);
  EXPECT_EQ(world.end(0).state(1), StreamSession::State::closed);
  EXPECT_EQ(world.end(0).last_end(1), StreamSession::End::stream_ended);
}

TEST(StreamLink, a_rail_that_swallows_everything_is_found_by_its_silence) {
  World world({.seed = 4, .rails = 2, .packets = 400});
  while (world.arrived(0) < 100) {
    world.turn();
  }
  for (unsigned i = 0; i < 100'000 && (world.arrived(0) < 400 || world.arrived(1) < 400); ++i) {
    world.into(0, 1).clear();
    world.into(1, 1).clear();
    world.now_ns() += 100'000;
    world.move(i % 2);
  }
  EXPECT_EQ(world.arrived(0), 400U);
  EXPECT_EQ(world.arrived(1), 400U);
  EXPECT_EQ(world.end(0).last_end(1), StreamSession::End::silence);
  EXPECT_TRUE(world.end(0).should_reopen(1));
}

TEST(StreamLink, what_was_sent_before_the_peer_came_arrives) {
  Couple couple;
  Couple::send(couple.ends[0], std::byte{1});
  Couple::send(couple.ends[0], std::byte{2});
  EXPECT_EQ(couple.exchange(), (std::vector<Bytes>{{std::byte{1}}, {std::byte{2}}}));
}

/// Time that `packets` of 4 KiB take over rails that carry as many bytes in each turn.
uint64_t time_over(size_t rails, uint64_t packets) {
  constexpr size_t kBytesPerTurn = 5000;
  Couple couple(rails, 1024);
  uint64_t sent = 0;
  uint64_t arrived = 0;
  const uint64_t begin = couple.now;
  std::vector<Bytes> got;
  while (arrived < packets) {
    for (StreamLink* end : {couple.ends.data(), couple.ends.data() + 1}) {
      end->tick(couple.now);
    }
    for (; sent < packets && !couple.ends[0].reserve().empty(); ++sent) {
      couple.ends[0].commit(4096);
    }
    couple.ends[0].distribute(couple.now);
    for (size_t rail = 0; rail < rails; ++rail) {
      couple.carry(couple.ends[0], couple.ends[1], rail, got, kBytesPerTurn);
      couple.carry(couple.ends[1], couple.ends[0], rail, got, kBytesPerTurn);
    }
    arrived += got.size();
    got.clear();
    couple.now += 1'000;
  }
  return couple.now - begin;
}

TEST(StreamLink, two_rails_carry_nearly_twice_as_much) {
  const uint64_t one = time_over(1, 5000);
  const uint64_t two = time_over(2, 5000);
  EXPECT_GE(one * 100, two * 195) << one << " ns, " << two << " ns";
  const uint64_t four = time_over(4, 5000);
  EXPECT_GE(one * 100, four * 380) << one << " ns, " << four << " ns";
}

TEST(StreamLink, a_full_window_takes_no_more_until_something_is_acknowledged) {
  Couple couple;
  couple.exchange();
  for (int i = 0; i < 4; ++i) {
    Couple::send(couple.ends[0], std::byte{1});
  }
  EXPECT_TRUE(couple.ends[0].reserve().empty());
  EXPECT_EQ(couple.exchange().size(), 4U);
  EXPECT_TRUE(couple.ends[0].reserve().empty()) << "acknowledgements wait for a frame to travel with";
  couple.now += StreamSession::Timing{}.acknowledge_ns;
  couple.ends[1].tick(couple.now);
  couple.exchange();
  EXPECT_FALSE(couple.ends[0].reserve().empty());
}

TEST(StreamLink, a_peer_that_starts_again_knows_of_nothing) {
  Couple couple;
  couple.exchange();
  Couple::send(couple.ends[0], std::byte{1});
  couple.exchange();
  Couple::send(couple.ends[0], std::byte{2});  // to the one that dies
  couple.ends[0].close(0);
  couple.ends.pop_back();
  couple.ends.push_back(Couple::make(1, 99));
  couple.ends[0].open(0, couple.now);
  couple.ends[1].open(0, couple.now);
  EXPECT_TRUE(couple.exchange().empty());
  EXPECT_EQ(couple.ends[0].peer_incarnation(), 99U);
  Couple::send(couple.ends[0], std::byte{3});
  Couple::send(couple.ends[1], std::byte{4});
  EXPECT_EQ(couple.exchange(), (std::vector<Bytes>{{std::byte{3}}, {std::byte{4}}}));
}

TEST(StreamLink, a_rail_to_somebody_else_stays_out) {
  Couple couple(2);
  couple.exchange(0);
  StreamLink stranger = Couple::make(2, 99);
  stranger.open(1, couple.now);
  std::vector<Bytes> packets;
  for (int i = 0; i < 10; ++i) {
    couple.carry(stranger, couple.ends[0], 1, packets);
    couple.carry(couple.ends[0], stranger, 1, packets);
  }
  EXPECT_EQ(couple.ends[0].state(1), StreamSession::State::hunting);
  EXPECT_EQ(couple.ends[0].last_end(1), StreamSession::End::refused);
  EXPECT_EQ(couple.ends[0].peer_incarnation(), 11U);
}

TEST(StreamLink, its_own_echo_is_no_peer) {
  Couple couple;
  StreamLink& link = couple.ends[0];
  for (int i = 0; i < 10; ++i) {
    const Bytes echo(link.output(0).begin(), link.output(0).end());
    std::copy(echo.begin(), echo.end(), link.input(0).begin());
    link.written(0, echo.size());
    link.received(0, echo.size());
    EXPECT_FALSE(link.next_packet(0, couple.now));
    link.tick(couple.now += 200'000'000);
  }
  EXPECT_EQ(link.state(0), StreamSession::State::hunting);
}

TEST(StreamLink, a_peer_that_leaves_says_so) {
  Couple couple;
  couple.exchange();
  couple.ends[1].leave(couple.now);
  couple.exchange();
  EXPECT_EQ(couple.ends[0].last_end(0), StreamSession::End::said_bye);
  EXPECT_TRUE(couple.ends[0].should_reopen(0));
  EXPECT_FALSE(couple.ends[0].is_up());
}

}  // namespace
}  // namespace ringbolt::link::stream_test
