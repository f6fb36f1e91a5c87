#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <latch>
#include <string>
#include <vector>

#include "bootstrap/connection.h"
#include "bootstrap/frame.h"
#include "bootstrap/side_channel.h"
#include "bootstrap/side_channel_test_support.h"

namespace ringbolt::bootstrap {
namespace {

using test::Party;
using test::soon;

std::vector<std::byte> numbered(uint32_t number, size_t length) {
  std::vector<std::byte> bytes(length);
  for (size_t i = 0; i < length; ++i) {
    bytes[i] = static_cast<std::byte>((number + i * 13) & 0xFF);
  }
  return bytes;
}

TEST(SideChannel, messages_of_every_pair_arrive_in_order) {
  constexpr uint32_t kMessages = 200;
  Party party(4);
  party.run([](SideChannel& side_channel) {
    for (uint32_t i = 0; i < kMessages; ++i) {
      for (uint32_t to = 0; to < 4; ++to) {
        if (to != side_channel.rank()) {
          ASSERT_TRUE(side_channel.send(to, static_cast<uint16_t>(i), numbered(i + side_channel.rank() * 50, i % 97)));
        }
      }
    }
    std::vector<uint32_t> next(4);
    for (const Event& event : test::wait_for_events(side_channel, 3 * kMessages)) {
      ASSERT_EQ(event.kind, Event::Kind::message);
      const uint32_t i = next[event.rank]++;
      EXPECT_EQ(event.message_kind, i);
      EXPECT_EQ(event.bytes, numbered(i + event.rank * 50, i % 97));
    }
    EXPECT_TRUE(side_channel.barrier(soon()));
  });
}

TEST(SideChannel, refuses_what_it_cannot_send) {
  Party party(2);
  party.run([](SideChannel& side_channel) {
    EXPECT_EQ(side_channel.send(2, 0, {}).error().value, EINVAL);
    const std::vector<std::byte> longest(kMaxMessageBytes);
    EXPECT_TRUE(side_channel.send(1 - side_channel.rank(), 0, longest));
    EXPECT_EQ(side_channel.send(1 - side_channel.rank(), 0, std::vector<std::byte>(kMaxMessageBytes + 1)).error().value,
              EMSGSIZE);
    EXPECT_EQ(test::wait_for_events(side_channel, 1)[0].bytes, longest);
    EXPECT_TRUE(side_channel.barrier(soon()));
  });
}

TEST(SideChannel, a_rank_whose_connection_cannot_be_watched_is_lost) {
  Party party(2);
  std::latch is_lost(1);
  party.run([&is_lost](SideChannel& side_channel) {
    ASSERT_TRUE(side_channel.barrier(soon()));
    if (side_channel.rank() == 1) {
      is_lost.wait();  // reads nothing until then, so rank 0 has to wait for room
      EXPECT_EQ(test::wait_for_event(side_channel, Event::Kind::lost).rank, 0U);
      return;
    }
    // As of a kernel without memory for it: no descriptor can be watched any more.
    const base::UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
    ASSERT_EQ(::dup3(null.get(), side_channel.fd(), O_CLOEXEC), side_channel.fd());
    const std::vector<std::byte> longest(kMaxMessageBytes);
    base::Result<void> sent;
    while ((sent = side_channel.send(1, 1, longest))) {
    }
    EXPECT_EQ(sent.error().value, ENOTCONN);
    const std::vector<Event> events = side_channel.poll();
    is_lost.count_down();
    ASSERT_EQ(events.size(), 1U);
    EXPECT_EQ(events[0].kind, Event::Kind::lost);
    EXPECT_EQ(events[0].errno_value, EINVAL);
  });
}

TEST(SideChannel, those_who_leave_are_reported_once_and_after_their_messages) {
  Party party(4);
  party.run([](SideChannel& side_channel) {
    ASSERT_TRUE(side_channel.barrier(soon()));
    if (side_channel.rank() == 2) {
      ASSERT_TRUE(side_channel.send(kEveryone, 9, numbered(2, 1000)));
      return;
    }
    test::Inbox inbox(side_channel);
    EXPECT_EQ(inbox.next().bytes, numbered(2, 1000));
    const Event left = inbox.next();
    EXPECT_EQ(left.kind, Event::Kind::left);
    EXPECT_EQ(left.rank, 2U);
    // The others still have each other.
    if (side_channel.rank() == 0) {
      EXPECT_EQ(side_channel.send(2, 0, {}).error().value, ENOTCONN);
      ASSERT_TRUE(side_channel.send(kEveryone, 1, {}));
      EXPECT_EQ(inbox.next().message_kind, 2);
      EXPECT_EQ(inbox.next().message_kind, 2);
      ASSERT_TRUE(side_channel.send(kEveryone, 3, {}));
    } else {
      EXPECT_EQ(inbox.next().message_kind, 1);
      ASSERT_TRUE(side_channel.send(0, 2, {}));
      EXPECT_EQ(inbox.next().message_kind, 3);
    }
    // Nobody leaves before all have heard.
    static_cast<void>(side_channel.send(kEveryone, 4, {}));
    while (inbox.next().message_kind != 4) {
    }
  });
}

TEST(SideChannel, without_rank_0_nothing_can_be_sent) {
  Party party(3);
  party.run([](SideChannel& side_channel) {
    ASSERT_TRUE(side_channel.barrier(soon()));
    if (side_channel.rank() == 0) {
      return;
    }
    const Event event = test::wait_for_event(side_channel, Event::Kind::left);
    EXPECT_EQ(event.rank, 0U);
    EXPECT_EQ(side_channel.send(1, 0, {}).has_value(), side_channel.rank() == 1);  // to oneself always
    EXPECT_EQ(side_channel.send(3 - side_channel.rank(), 0, {}).error().value, ENOTCONN);
    EXPECT_FALSE(side_channel.barrier(soon()));
  });
}

TEST(SideChannel, of_heartbeats_to_a_rank_that_does_not_read_the_newest_arrive) {
  constexpr uint32_t kBeats = 20'000;  // 1 KiB each: far more than sockets and queues hold
  Party party(3);
  std::atomic<bool> is_sent = false;
  party.run([&](SideChannel& side_channel) {
    ASSERT_TRUE(side_channel.barrier(soon()));
    if (side_channel.rank() == 1) {
      for (uint32_t i = 1; i <= kBeats; ++i) {
        ASSERT_TRUE(side_channel.send(2, 4, numbered(i, 1024), true));
        ASSERT_TRUE(side_channel.send(2, 5, numbered(i + 7, 1024), true));
        side_channel.poll();
      }
      // Rank 0 answers, whatever rank 2 does, so all of it is past.
      ASSERT_TRUE(side_channel.send(0, 1, {}));
      EXPECT_EQ(test::wait_for_events(side_channel, 1)[0].message_kind, 2);
      is_sent = true;
    } else if (side_channel.rank() == 0) {
      EXPECT_EQ(test::wait_for_events(side_channel, 1)[0].message_kind, 1);
      ASSERT_TRUE(side_channel.send(1, 2, {}));
    } else {
      while (!is_sent) {
        std::this_thread::yield();
      }
      std::vector<std::byte> newest;
      size_t n_events = 0;
      while (newest != numbered(kBeats, 1024)) {
        for (const Event& event : test::wait_for_events(side_channel, 1)) {
          ASSERT_EQ(event.kind, Event::Kind::message);
          newest = event.message_kind == 4 ? event.bytes : newest;
          ++n_events;
        }
      }
      EXPECT_LT(n_events, 2 * kBeats);
    }
    EXPECT_TRUE(side_channel.barrier(soon()));
  });
}

TEST(SideChannel, a_rank_that_does_not_read_messages_is_given_up_alone) {
  Party party(4);
  std::atomic<bool> is_over = false;
  party.run([&](SideChannel& side_channel) {
    ASSERT_TRUE(side_channel.barrier(soon()));
    if (side_channel.rank() == 2) {
      while (!is_over) {
        std::this_thread::yield();
      }
      return;
    }
    if (side_channel.rank() == 1) {
      const std::vector<std::byte> message(kMaxMessageBytes);
      for (bool is_lost = false; !is_lost;) {
        static_cast<void>(side_channel.send(2, 4, message));
        for (const Event& event : side_channel.poll()) {
          EXPECT_EQ(event.kind, Event::Kind::lost);
          EXPECT_EQ(event.rank, 2U);
          EXPECT_EQ(event.errno_value, ENOBUFS);
          is_lost = true;
        }
      }
      ASSERT_TRUE(side_channel.send(3, 6, message));
      ASSERT_TRUE(side_channel.send(0, 6, message));
    } else {
      test::Inbox inbox(side_channel);
      EXPECT_EQ(inbox.next().errno_value, ENOBUFS);
      EXPECT_EQ(inbox.next().message_kind, 6);
    }
    if (side_channel.rank() == 3) {
      is_over = true;
    }
    while (!is_over) {
      side_channel.poll();
    }
  });
}

}  // namespace
}  // namespace ringbolt::bootstrap
