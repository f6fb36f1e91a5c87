#include "link/stream_health.h"

#include <gtest/gtest.h>

#include "link/stream_test_support.h"

namespace ringbolt::link::stream_test {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kGraceNs = 500 * kMs;
constexpr uint64_t kOutageNs = 2'000 * kMs;

struct StreamHealthTest : testing::Test {
  Couple couple;
  StreamHealth health{{.grace_ns = kGraceNs, .outage_ns = kOutageNs}};

  StreamHealthTest() { couple.now = 1'000 * kMs; }
  void update() { health.update(couple.ends[0], couple.now); }
  void pass(uint64_t time_ns) {
    couple.now += time_ns;
    update();
  }
  void meet() {
    couple.exchange();
    update();
  }
  void lose() {
    couple.ends[0].close(0);
    couple.ends[1].close(0);
    update();
  }
  void find_again() {
    couple.reopen();
    meet();
  }
};

TEST_F(StreamHealthTest, a_peer_that_has_not_come_yet_is_late) {
  pass(100 * kGraceNs);
  EXPECT_FALSE(health.is_gone());
  EXPECT_EQ(health.excused_until_ns(couple.now), 0U);
  EXPECT_EQ(health.next_deadline_ns(), UINT64_MAX);
}

TEST_F(StreamHealthTest, a_peer_that_was_there_is_gone_after_the_grace_time) {
  meet();
  lose();
  EXPECT_EQ(health.next_deadline_ns(), couple.now + kGraceNs);
  pass(kGraceNs - 1);
  EXPECT_FALSE(health.is_gone());
  pass(1);
  EXPECT_TRUE(health.is_gone());
  EXPECT_EQ(health.next_deadline_ns(), UINT64_MAX);
  find_again();
  EXPECT_FALSE(health.is_gone());
}

TEST_F(StreamHealthTest, one_that_says_goodbye_is_gone_at_once_and_excuses_nothing) {
  meet();
  couple.ends[1].leave(couple.now);
  couple.exchange();
  update();
  EXPECT_TRUE(health.is_gone());
  pass(100 * kMs);
  EXPECT_EQ(health.excused_until_ns(couple.now), 0U);
}

TEST_F(StreamHealthTest, an_interruption_is_excused_while_it_lasts_and_up_to_its_end) {
  meet();
  const uint64_t begin = couple.now;
  lose();
  pass(300 * kMs);
  EXPECT_EQ(health.excused_until_ns(couple.now), couple.now);
  EXPECT_EQ(health.excused_until_ns(couple.now + 50 * kMs), couple.now + 50 * kMs);
  find_again();
  EXPECT_EQ(health.excused_until_ns(couple.now + 900 * kMs), begin + 300 * kMs);
}

TEST_F(StreamHealthTest, no_longer_than_the_outage) {
  meet();
  const uint64_t begin = couple.now;
  lose();
  pass(kOutageNs);
  EXPECT_EQ(health.excused_until_ns(couple.now), begin + kOutageNs);
  pass(kOutageNs);
  EXPECT_EQ(health.excused_until_ns(couple.now), begin + kOutageNs);
  find_again();
  EXPECT_EQ(health.excused_until_ns(couple.now), begin + kOutageNs);
}

TEST_F(StreamHealthTest, a_peer_that_acknowledges_nothing_interrupts_too) {
  meet();
  const uint64_t begin = couple.now;
  Couple::send(couple.ends[0], std::byte{1});
  couple.ends[0].distribute(couple.now);
  update();
  pass(19 * kMs);
  EXPECT_EQ(health.excused_until_ns(couple.now), 0U);
  pass(81 * kMs);
  EXPECT_EQ(health.excused_until_ns(couple.now), couple.now);
  couple.exchange();
  couple.now += StreamSession::Timing{}.acknowledge_ns;
  couple.ends[1].tick(couple.now);
  couple.exchange();
  update();
  EXPECT_EQ(couple.ends[0].waiting_since_ns(), 0U);
  EXPECT_EQ(health.excused_until_ns(couple.now + 900 * kMs), begin + 100 * kMs + StreamSession::Timing{}.acknowledge_ns);
  EXPECT_FALSE(health.is_gone());
}

}  // namespace
}  // namespace ringbolt::link::stream_test
