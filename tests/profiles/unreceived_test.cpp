// UC messages that meet no receive: held back, dropped, or parked at the receiver.
#include <gtest/gtest.h>

#include <chrono>

#include "rig.h"

namespace ringbolt::profiles {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
constexpr size_t kPlace = 4096;
constexpr uint64_t kSend = 1;
constexpr uint64_t kReceive = 2;

/// Messages of one queue pair to another: number i is i from its first to its last byte, and is received at place i.
struct Unreceived {
  explicit Unreceived(const std::string& knob, size_t most_bytes = kPlace)
      : rig("roce," + knob), source(rig, most_bytes), target(rig, 8 * most_bytes), pair(rig) {}

  void send(uint8_t number, size_t length) const {
    std::memset(source.data(), number, length);
    ASSERT_EQ(post_send(pair.a.get(), source.piece(length)), 0);
    settle();
  }
  void receive(size_t place, size_t length) const {
    ASSERT_EQ(post_receive(pair.b.get(), target.piece(length, place * length)), 0);
  }
  /// Until nothing has happened for a while. What completed: sends, and receives by their length.
  void settle() const {
    for (auto last = Clock::now(); Clock::now() - last < milliseconds(20);) {
      ibv_wc wc{};
      if (ibv_poll_cq(rig.cq.get(), 1, &wc) == 1) {
        EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
        sent += wc.wr_id == kSend ? 1U : 0U;
        if (wc.wr_id == kReceive) {
          lengths.push_back(wc.byte_len);
        }
        last = Clock::now();
      }
    }
  }

  Rig rig;
  Buffer source;
  Buffer target;
  Pair pair;
  mutable size_t sent = 0;
  mutable std::vector<uint32_t> lengths;
};

TEST(NoReceive, holds_the_sender_back_unless_a_knob_is_turned) {
  const Unreceived uc("norecv=wait");
  uc.send(1, 100);
  uc.receive(0, kPlace);
  uc.settle();
  EXPECT_EQ(uc.lengths, std::vector<uint32_t>{100});
  EXPECT_EQ(uc.target.data()[99], 1);
}

TEST(NoReceive, drops_what_comes_too_early_and_tells_once) {
  testing::internal::CaptureStderr();
  const Unreceived uc("norecv=drop");
  uc.send(1, 100);
  uc.send(2, kPlace);
  EXPECT_EQ(uc.sent, 2U);  // nobody says it to the sender
  uc.receive(0, kPlace);
  uc.send(3, kPlace);
  EXPECT_EQ(uc.sent, 3U);
  EXPECT_EQ(uc.lengths, std::vector<uint32_t>{kPlace});
  EXPECT_EQ(uc.target.data()[0], 3);
  EXPECT_EQ(uc.target.data()[kPlace - 1], 3);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("norecv"), std::string::npos);
  EXPECT_EQ(said.find("norecv"), said.rfind("norecv"));
}

TEST(NoReceive, drops_what_came_before_the_receive_although_nobody_polled) {
  const Unreceived uc("norecv=drop");
  uc.receive(0, kPlace);
  uc.send(1, 50);  // from here on what is sent is there at once
  ASSERT_EQ(post_send(uc.pair.a.get(), uc.source.piece(100)), 0);
  uc.receive(0, kPlace);
  uc.settle();
  EXPECT_EQ(uc.lengths, std::vector<uint32_t>{50});
}

TEST(NoReceive, parks_as_many_messages_as_there_are_places_in_their_order) {
  const Unreceived uc("norecv=park:3:1000000");
  for (uint8_t i = 0; i < 5; ++i) {
    uc.send(i + 1, 100U + i);
  }
  EXPECT_EQ(uc.sent, 5U);
  for (size_t i = 0; i < 4; ++i) {
    uc.receive(i, kPlace);
  }
  uc.send(6, 200);
  EXPECT_EQ(uc.lengths, (std::vector<uint32_t>{100, 101, 102, 200}));
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(uc.target.data()[i * kPlace + 99], i + 1);
  }
  EXPECT_EQ(uc.target.data()[3 * kPlace + 199], 6);
}

TEST(NoReceive, parks_as_many_bytes_as_there_is_room_for) {
  constexpr size_t kLong = 100'000;  // several chunks of a lane, many packets of a network
  const Unreceived uc("norecv=park:10:250000", kLong);
  uc.send(1, kLong);
  uc.send(2, kLong);
  uc.send(3, kLong);  // no room for it
  uc.send(4, 40'000);
  for (size_t i = 0; i < 3; ++i) {
    uc.receive(i, kLong);
  }
  uc.settle();
  EXPECT_EQ(uc.lengths, (std::vector<uint32_t>{kLong, kLong, 40'000}));
  EXPECT_EQ(uc.target.data()[kLong - 1], 1);
  EXPECT_EQ(uc.target.data()[kLong], 2);
  EXPECT_EQ(uc.target.data()[2 * kLong - 1], 2);
  EXPECT_EQ(uc.target.data()[2 * kLong + 39'999], 4);
  uc.send(5, kLong);  // the room is free again
  uc.receive(0, kLong);
  uc.settle();
  EXPECT_EQ(uc.lengths.size(), 4U);
  EXPECT_EQ(uc.target.data()[kLong - 1], 5);
}

TEST(NoReceive, ends_a_receive_that_is_too_short_for_what_was_parked) {
  const Unreceived uc("norecv=park");
  uc.send(1, 200);
  ASSERT_EQ(post_receive(uc.pair.b.get(), uc.target.piece(100)), 0);
  const auto all = poll(uc.rig.cq.get(), 1);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].status, IBV_WC_LOC_LEN_ERR);
  EXPECT_EQ(uc.target.data()[0], 0);
}

TEST(NoReceive, asks_nothing_new_of_reliable_queue_pairs) {
  const Rig rig("roce,norecv=drop");
  const Buffer buffer(rig, 2 * kPlace);
  const Pair pair(rig, rig.wanted(IBV_QPT_RC));
  ASSERT_EQ(post_send(pair.a.get(), buffer.piece(100)), 0);
  ASSERT_EQ(post_receive(pair.b.get(), buffer.piece(kPlace, kPlace)), 0);
  const auto all = poll(rig.cq.get(), 2);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(of(all, kReceive)->status, IBV_WC_SUCCESS);
}

}  // namespace
}  // namespace ringbolt::profiles
