#include "link/peer_events.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include <array>
#include <cerrno>
#include <map>
#include <random>

#include "link/rendezvous_test_support.h"

namespace ringbolt::link {
namespace {

constexpr uint64_t kLargestId = (uint64_t{1} << 56U) - 1;

base::UniqueFd rung_bell() { return base::UniqueFd(eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK)); }

TEST(PeerEvents, tell_which_of_what_kind_without_confusion) {
  PeerEvents events;
  std::mt19937_64 random(3);
  std::map<std::pair<Source, uint64_t>, base::UniqueFd> added;
  for (const Source source : {Source::listener, Source::bell, Source::line, Source::process, Source::watched}) {
    for (const uint64_t id : {uint64_t{0}, uint64_t{1}, random() & kLargestId, kLargestId}) {
      base::UniqueFd& bell = added[{source, id}] = rung_bell();
      ASSERT_TRUE(events.add(bell.get(), source, id));
    }
  }
  EXPECT_TRUE(events.has_pending());
  std::array<epoll_event, 64> buffer;
  const size_t count = events.wait(buffer, 0);
  EXPECT_EQ(count, added.size());
  for (size_t i = 0; i < count; ++i) {
    EXPECT_EQ(added.erase({PeerEvents::source_of(buffer[i]), PeerEvents::id_of(buffer[i])}), 1U);
  }
  EXPECT_TRUE(added.empty());
}

TEST(PeerEvents, end_with_remove_though_a_copy_of_the_descriptor_lives) {
  PeerEvents events;
  base::UniqueFd bell = rung_bell();
  const base::UniqueFd childs(fcntl(bell.get(), F_DUPFD_CLOEXEC, 0));
  ASSERT_TRUE(events.add(bell.get(), Source::process, 1));
  EXPECT_FALSE(events.add(bell.get(), Source::process, 2)) << "twice";
  EXPECT_EQ(errno, EEXIST);
  events.remove(bell.get());
  bell.reset();
  std::array<epoll_event, 2> buffer;
  EXPECT_EQ(events.wait(buffer, 0), 0U);
  EXPECT_FALSE(events.add(-1, Source::process, 1));
}

TEST(PeerEvents, the_retry_timer_rings_until_it_is_acknowledged) {
  PeerEvents events;
  const Watch watch = events.watch_of_line(kLargestId);
  itimerspec soon{};
  soon.it_value.tv_nsec = 1;
  ASSERT_EQ(timerfd_settime(watch.retry_timer_fd, 0, &soon, nullptr), 0);
  std::array<epoll_event, 2> buffer;
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(events.wait(buffer, static_cast<int>(testing::kPatienceNs / 1'000'000)), 1U);
    EXPECT_EQ(PeerEvents::source_of(buffer[0]), Source::retry_timer);
  }
  events.acknowledge_retry();
  EXPECT_FALSE(events.has_pending());
  EXPECT_EQ(watch.key, (static_cast<uint64_t>(Source::line) << 56U) | kLargestId);
}

}  // namespace
}  // namespace ringbolt::link
