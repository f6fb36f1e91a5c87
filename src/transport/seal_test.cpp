#include "transport/seal.h"

#include <gtest/gtest.h>

#include <utility>

#include "transport/engine_test_support.h"

namespace ringbolt::transport {
namespace {

using test::acknowledge;
using test::Packet;
using test::request;

constexpr uint64_t kOurs = 0x1111;
constexpr uint64_t kTheirs = 0x2222;
constexpr uint64_t kForged = 0x6666;

struct SealTest : ::testing::Test {
  Seal ours;
  Seal theirs;
  SealTest() {
    ours.begin(kOurs);
    theirs.begin(kTheirs);
  }

  static std::optional<wire::Greeting> give(Seal& to, const wire::Greeting& greeting) {
    to.hear(greeting);
    return to.take(greeting);
  }
  /// The greeting arrives at `to`, and answers go there and back until nobody has one. Returns how many greetings went.
  static int talk(std::optional<wire::Greeting> greeting, Seal* to, Seal* from) {
    int sent = 0;
    for (; greeting && sent < 20; ++sent) {
      greeting = give(*to, *greeting);
      std::swap(to, from);
    }
    return sent;
  }
  static int begin(Seal& from, Seal& to) { return talk(from.greeting(), &to, &from); }
  bool is_agreed() const {
    return ours.is_agreed() && theirs.is_agreed() && ours.peer_token() == kTheirs && theirs.peer_token() == kOurs;
  }
  static bool admits(Seal& to, Packet packet, uint64_t token = 0) {
    seal(packet.headers, token);
    return to.admits(packet.view());
  }
};

TEST_F(SealTest, lets_everybody_in_until_it_is_agreed_upon) {
  EXPECT_TRUE(admits(ours, request(wire::kRcSendOnly, 0)));
  EXPECT_TRUE(admits(ours, acknowledge(0)));
  EXPECT_EQ(ours.peer_token(), 0U);
  EXPECT_FALSE(admits(ours, request(wire::kRcSendOnly, 0), kTheirs));
}

TEST_F(SealTest, is_agreed_after_four_greetings) {
  EXPECT_EQ(begin(ours, theirs), 4);
  EXPECT_TRUE(is_agreed());
  EXPECT_FALSE(admits(ours, request(wire::kRcSendOnly, 0)));
  EXPECT_FALSE(admits(ours, request(wire::kRcSendOnly, 0), kOurs + 1));
  EXPECT_TRUE(admits(ours, request(wire::kRcSendOnly, 0), kOurs));
  EXPECT_EQ(begin(theirs, ours), 1);
}

TEST_F(SealTest, both_may_begin_at_once) {
  const wire::Greeting first = ours.greeting();
  begin(theirs, ours);
  EXPECT_TRUE(is_agreed());
  EXPECT_EQ(talk(first, &theirs, &ours), 2);  // late
  EXPECT_TRUE(is_agreed());
}

TEST_F(SealTest, requests_and_answers_are_sealed_from_the_first_one_on) {
  ASSERT_TRUE(admits(ours, request(wire::kRcSendOnly, 0), kOurs));
  EXPECT_TRUE(ours.is_agreed());
  EXPECT_FALSE(admits(ours, request(wire::kRcSendOnly, 1)));
  EXPECT_FALSE(admits(ours, acknowledge(0)));
  EXPECT_TRUE(admits(ours, acknowledge(0), kOurs));
}

TEST_F(SealTest, any_of_the_greetings_may_get_lost) {
  for (int lost = 0; lost < 4; ++lost) {
    ours.begin(kOurs);
    theirs.begin(kTheirs);
    std::optional<wire::Greeting> greeting = ours.greeting();
    for (int sent = 0; sent < lost; ++sent) {
      greeting = give(sent % 2 == 0 ? theirs : ours, *greeting);
    }
    // Who doesn't know that all is agreed greets again.
    begin(ours.is_agreed() ? theirs : ours, ours.is_agreed() ? ours : theirs);
    EXPECT_TRUE(is_agreed()) << lost;
  }
}

TEST_F(SealTest, believes_no_greeting_of_who_does_not_know_its_token) {
  for (const uint64_t echo : {uint64_t{0}, kTheirs, kForged, kOurs ^ 1}) {
    for (const bool is_sealing : {false, true}) {
      // The answer goes to the peer's address, where the forger does not see it. The peer has no use for it.
      const auto answer = give(ours, {true, is_sealing, kForged, echo});
      ASSERT_TRUE(answer);
      EXPECT_EQ(answer->echo, kForged);
      EXPECT_EQ(ours.peer_token(), 0U);
      EXPECT_FALSE(ours.is_agreed());
    }
  }
  begin(ours, theirs);
  EXPECT_TRUE(is_agreed());
  give(ours, {true, true, kForged, 0});
  give(ours, {true, true, kForged, kTheirs});
  EXPECT_TRUE(is_agreed());
}

TEST_F(SealTest, forged_greetings_raise_no_endless_talk) {
  EXPECT_LE(talk(wire::Greeting{true, true, kForged, 0}, &ours, &theirs), 5);
  EXPECT_TRUE(is_agreed());
  for (const uint64_t echo : {uint64_t{0}, kForged}) {
    EXPECT_LE(talk(wire::Greeting{true, true, kForged, echo}, &ours, &theirs), 3);
    EXPECT_TRUE(is_agreed());
  }
}

TEST_F(SealTest, finds_a_peer_that_began_anew) {
  begin(ours, theirs);
  constexpr uint64_t kNew = 0x3333;
  const wire::Greeting stale{false, true, kTheirs, kOurs};
  theirs.begin(kNew);
  begin(theirs, ours);
  EXPECT_EQ(ours.peer_token(), kNew);
  EXPECT_EQ(theirs.peer_token(), kOurs);
  // A greeting of the earlier connection that comes late is believed, and put right at once.
  EXPECT_LT(talk(stale, &ours, &theirs), 20);
  EXPECT_EQ(ours.peer_token(), kNew);
}

TEST_F(SealTest, where_nobody_else_can_send_nothing_is_sealed) {
  ours.begin(0);
  EXPECT_TRUE(admits(ours, request(wire::kRcSendOnly, 0)));
  EXPECT_FALSE(admits(ours, request(wire::kRcSendOnly, 0), kTheirs));
  EXPECT_FALSE(give(ours, {true, true, kTheirs, 0}));
  EXPECT_EQ(ours.peer_token(), 0U);
}

}  // namespace
}  // namespace ringbolt::transport
