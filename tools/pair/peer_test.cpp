#include "pair/peer.h"

#include <sys/socket.h>

#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/unique_fd.h"

namespace ringbolt::tools::pair {
namespace {

using testing::HasSubstr;

constexpr uint64_t kHourNs = 3'600'000'000'000;

/// A peer that is connected and says nothing.
class SilentPeer : public testing::Test {
 protected:
  void SetUp() override {
    int fds[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    ours_ = base::UniqueFd(fds[0]);
    theirs_ = base::UniqueFd(fds[1]);
    const int room_bytes = 1 << 20;  // or as much as this machine allows
    ::setsockopt(theirs_.get(), SOL_SOCKET, SO_SNDBUF, &room_bytes, sizeof room_bytes);
  }
  Peer peer(uint64_t timeout_ns) const { return {Channel(ours_.get(), ours_.get()), "n7", timeout_ns}; }
  Channel other_end() const { return {theirs_.get(), theirs_.get()}; }

  base::UniqueFd ours_;
  base::UniqueFd theirs_;
};

TEST_F(SilentPeer, is_awaited_until_the_end_of_all_however_long_one_wait_may_take) {
  Peer silent = peer(kHourNs);
  silent.set_end(base::now_ns());
  try {
    silent.await("hello", "its parameters");
    FAIL() << "it said nothing";
  } catch (const ProbeFailure& failure) {
    EXPECT_THAT(failure.what(), HasSubstr("for its parameters, until the time for all was over; n7 is connected"));
    EXPECT_FALSE(failure.is_echo());
  }
}

TEST_F(SilentPeer, is_awaited_as_long_as_one_wait_may_take_however_far_the_end_is) {
  Peer silent = peer(0);
  silent.set_end(base::now_ns() + kHourNs);
  try {
    silent.await("hello", "its parameters");
    FAIL() << "it said nothing";
  } catch (const ProbeFailure& failure) {
    EXPECT_THAT(failure.what(), HasSubstr("for its parameters; n7 is connected and silent"));
  }
}

TEST_F(SilentPeer, leaves_the_lesser_of_both_times) {
  Peer silent = peer(kHourNs);
  const uint64_t now = base::now_ns();
  EXPECT_GT(silent.left_ns(now), kHourNs / 2);
  silent.set_end(now + kHourNs / 4);
  EXPECT_LE(silent.left_ns(now), kHourNs / 4);
  EXPECT_EQ(silent.left_ns(now - kHourNs), 0U);
  silent.set_end(now - 1);
  EXPECT_EQ(silent.left_ns(now), 0U);
}

TEST_F(SilentPeer, that_fails_at_last_says_so_in_words_that_no_terminal_obeys) {
  other_end().send_text("failed\n\x1b[2J no cable \xc3\xbc");
  Peer failed = peer(kHourNs);
  try {
    failed.await("hello", "its parameters");
    FAIL() << "it has failed";
  } catch (const ProbeFailure& failure) {
    EXPECT_STREQ(failure.what(), "n7 failed: ?[2J no cable \xc3\xbc");
    EXPECT_TRUE(failure.is_echo());
  }
}

TEST_F(SilentPeer, that_never_ceases_to_say_that_it_works_is_left_at_the_end_of_all) {
  std::thread flood([fd = theirs_.get()] {
    constexpr char kFrame[] = "\x08\0\0\0working\n";  // in the byte order of all machines that we are built for
    while (::send(fd, kFrame, sizeof kFrame - 1, MSG_NOSIGNAL) > 0) {
    }
  });
  Peer busy = peer(kHourNs);
  busy.set_end(base::now_ns() + 50'000'000);
  EXPECT_THROW(busy.await("hello", "its parameters"), ProbeFailure);
  ::shutdown(ours_.get(), SHUT_RDWR);
  flood.join();
}

TEST_F(SilentPeer, is_heard_to_the_last_text_however_much_comes_before_it) {
  Peer talkative = peer(kHourNs);
  talkative.keep_newest_of("news");
  const std::string news = "news\n" + std::string(5'000, 'x');
  for (int i = 0; i < 16; ++i) {  // more than one look takes, and less than the socket holds
    other_end().send_text(news);
  }
  other_end().send_text("hello\nlast");
  EXPECT_EQ(talkative.await("hello", "its parameters"), "last");
}

TEST_F(SilentPeer, is_told_nothing_that_it_would_not_take) {
  other_end().send_text("short");
  try {
    other_end().send_text(std::string(Channel::kMostTextBytes + 1, 'x'));
    FAIL() << "the other end refuses it";
  } catch (const ProbeFailure& failure) {
    EXPECT_THAT(failure.what(), HasSubstr("1048577 bytes are more than the 1048576"));
  }
}

}  // namespace
}  // namespace ringbolt::tools::pair
