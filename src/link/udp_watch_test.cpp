#include "link/udp_watch.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "link/rendezvous_test_support.h"

namespace ringbolt::link {
namespace {

using testing::Child;
using testing::kPatienceNs;

/// Lives until it is killed.
struct Sleeper : Child {
  Sleeper()
      : Child([] {
          pause();
          return 0;
        }) {}
  void end() {
    kill(SIGKILL);
    wait();
  }
};

bool has_news(const UdpWatch& watch, int patience_ms = 0) {
  pollfd waiting{watch.descriptor(), POLLIN, 0};
  return poll(&waiting, 1, patience_ms) == 1;
}
bool awaits_news(const UdpWatch& watch) { return has_news(watch, static_cast<int>(kPatienceNs / 1'000'000)); }

/// Whole seconds until the last timer of this process rings, as the kernel lists them; -1: none is armed.
long longest_timer_s() {
  long longest = -1;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fdinfo")) {
    std::ifstream info(entry.path());
    for (std::string line; std::getline(info, line);) {
      long seconds = 0;
      if (std::sscanf(line.c_str(), "it_value: (%ld,", &seconds) == 1) {
        longest = std::max(longest, seconds);
      }
    }
  }
  return longest;
}

TEST(UdpWatch, tells_once_of_each_process_that_ends) {
  Sleeper one;
  Sleeper two;
  UdpWatch watch;
  watch.watch({one.pid(), two.pid(), one.pid()});
  EXPECT_FALSE(watch.take_news());
  one.kill(SIGKILL);  // and stays a zombie: a member that its parent does not wait for is gone all the same
  EXPECT_TRUE(awaits_news(watch));
  EXPECT_TRUE(watch.take_news());
  EXPECT_FALSE(watch.take_news());
  EXPECT_FALSE(has_news(watch));
  two.end();
  EXPECT_TRUE(awaits_news(watch));
  EXPECT_TRUE(watch.take_news());
}

TEST(UdpWatch, a_new_list_keeps_news_of_who_stays_and_drops_that_of_others) {
  Sleeper stays;
  Sleeper goes;
  UdpWatch watch;
  watch.watch({stays.pid(), goes.pid()});
  goes.end();
  EXPECT_TRUE(awaits_news(watch));
  watch.watch({stays.pid()});
  EXPECT_FALSE(has_news(watch));
  const pid_t pid = stays.pid();
  stays.end();
  watch.watch({pid});  // made from a file that was read before it ended; its number names nobody any more
  EXPECT_TRUE(awaits_news(watch));
  EXPECT_TRUE(watch.take_news());
}

TEST(UdpWatch, those_that_cant_be_seen_are_left_out) {
  UdpWatch watch;
  watch.watch({INT_MAX, 0, -1});
  EXPECT_FALSE(has_news(watch));
  EXPECT_FALSE(watch.take_news());
}

TEST(UdpWatch, rings_once_however_long_the_delay) {
  UdpWatch watch;
  watch.alarm_in(1);
  EXPECT_TRUE(awaits_news(watch));
  EXPECT_TRUE(watch.take_news());
  EXPECT_FALSE(has_news(watch));
  watch.alarm_in(2500);
  EXPECT_GE(longest_timer_s(), 1) << "more than the nanoseconds of a second";
  watch.alarm_in(1);  // the last wish counts
  EXPECT_TRUE(awaits_news(watch));
}

}  // namespace
}  // namespace ringbolt::link
