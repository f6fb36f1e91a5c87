#include "bootstrap/side_channel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <string>
#include <vector>

#include "base/clock.h"
#include "bootstrap/frame.h"
#include "bootstrap/side_channel_test_support.h"

namespace ringbolt::bootstrap {
namespace {

using test::Party;
using test::soon;
using ::testing::HasSubstr;

std::vector<std::byte> pattern(uint32_t rank, size_t length) {
  std::vector<std::byte> bytes(length);
  for (size_t i = 0; i < length; ++i) {
    bytes[i] = static_cast<std::byte>((i * 31 + i / 251 + rank * 97 + 1) & 0xFF);
  }
  return bytes;
}

TEST(Exchange, of_one_needs_no_network) {
  SideChannel side_channel = SideChannel::join({.rank = 0, .n_ranks = 1});
  const auto shares = side_channel.all_gather(pattern(0, 10), soon());
  ASSERT_TRUE(shares);
  EXPECT_EQ(*shares, std::vector<std::vector<std::byte>>(1, pattern(0, 10)));
  EXPECT_TRUE(side_channel.barrier(soon()));
  EXPECT_TRUE(side_channel.send(0, 7, pattern(0, 3)));
  const auto events = side_channel.poll();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].bytes, pattern(0, 3));
}

TEST(Exchange, gathers_shares_of_any_length) {
  Party party(5);
  party.run([](SideChannel& side_channel) {
    for (uint32_t round = 0; round < 50; ++round) {
      const auto length = [round](uint32_t rank) { return size_t{(rank * 7919 + round * 101) % 3000 * (rank % 3)}; };
      const auto shares =
          side_channel.all_gather(pattern(side_channel.rank() + round, length(side_channel.rank())), soon());
      ASSERT_TRUE(shares) << shares.error().text;
      ASSERT_EQ(shares->size(), 5U);
      for (uint32_t rank = 0; rank < 5; ++rank) {
        EXPECT_EQ((*shares)[rank], pattern(rank + round, length(rank)));
      }
      ASSERT_TRUE(side_channel.barrier(soon()));
    }
  });
}

TEST(Exchange, gathers_the_longest_share_and_refuses_one_byte_more) {
  Party party(3);
  party.run([](SideChannel& side_channel) {
    const auto shares = side_channel.all_gather(pattern(side_channel.rank(), kMaxShareBytes), soon());
    ASSERT_TRUE(shares) << shares.error().text;
    for (uint32_t rank = 0; rank < 3; ++rank) {
      EXPECT_TRUE((*shares)[rank] == pattern(rank, kMaxShareBytes));
    }
    const auto refused = side_channel.all_gather(pattern(0, side_channel.rank() == 1 ? kMaxShareBytes + 1 : 1), soon());
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().text, HasSubstr("rank 1 gave 16777217 bytes"));
  });
}

TEST(Exchange, of_64_meets) {
  Party party(64);
  const uint64_t begin = base::now_ns();
  party.run([](SideChannel& side_channel) {
    const auto shares = side_channel.all_gather(pattern(side_channel.rank(), 200), soon());
    ASSERT_TRUE(shares) << shares.error().text;
    for (uint32_t rank = 0; rank < 64; ++rank) {
      EXPECT_EQ((*shares)[rank], pattern(rank, 200));
    }
  });
  std::printf("64 ranks met, gathered and left in %.3f s\n", static_cast<double>(base::now_ns() - begin) / 1e9);
}

TEST(Exchange, meets_with_a_secret_and_over_ipv6) {
  Party party(3, "::1");
  party.config.secret = "correct horse battery staple";
  party.config.group = "a group";
  party.run([](SideChannel& side_channel) { EXPECT_TRUE(side_channel.barrier(soon())); });
}

TEST(Exchange, refuses_unequal_order_of_calls_on_all_ranks) {
  for (uint32_t odd : {0U, 1U, 2U}) {
    Party party(3);
    party.run([odd](SideChannel& side_channel) {
      ASSERT_TRUE(side_channel.barrier(soon()));
      std::string text;
      if (side_channel.rank() == odd) {
        text = side_channel.barrier(soon()).error().text;
      } else {
        text = side_channel.all_gather({}, soon()).error().text;
      }
      EXPECT_THAT(text, HasSubstr("exchange 2: rank "));
      EXPECT_THAT(text, HasSubstr("called barrier"));
      EXPECT_THAT(text, HasSubstr("called all_gather"));
      EXPECT_FALSE(side_channel.barrier(soon()));  // and so does every later one
    });
  }
}

TEST(Exchange, deadline_names_who_is_missing_on_all_ranks) {
  Party party(4);
  // What rank 0 says again counts as heard: the limit is longer than the silence, and that than a machine's pauses.
  party.config.roster_again_ms = 10;
  party.config.silent_ms = 2'500;
  party.run([](SideChannel& side_channel) {
    ASSERT_TRUE(side_channel.barrier(soon()));
    if (side_channel.rank() == 2) {
      test::wait_for_event(side_channel, Event::Kind::left);  // does not come to the exchange
      EXPECT_FALSE(side_channel.barrier(soon()));
      return;
    }
    const auto done = side_channel.barrier(base::now_ns() + 3'000'000'000);
    ASSERT_FALSE(done);
    EXPECT_THAT(done.error().text, HasSubstr("the deadline of barrier 2 has passed"));
    EXPECT_THAT(done.error().text, HasSubstr("it waits for rank 2"));
  });
}

TEST(Exchange, leaving_fails_the_exchange_of_the_others) {
  for (uint32_t leaver : {0U, 1U}) {
    Party party(3);
    party.run([leaver](SideChannel& side_channel) {
      ASSERT_TRUE(side_channel.barrier(soon()));
      if (side_channel.rank() == leaver) {
        return;
      }
      const auto done = side_channel.barrier(soon());
      ASSERT_FALSE(done);
      EXPECT_THAT(done.error().text, HasSubstr("rank " + std::to_string(leaver) + " has left the group"));
    });
  }
}

TEST(Exchange, all_may_leave_right_after_an_exchange) {
  for (int i = 0; i < 50; ++i) {
    Party party(4);
    party.run([](SideChannel& side_channel) {
      const auto shares = side_channel.all_gather(pattern(side_channel.rank(), 100'000), soon());
      EXPECT_TRUE(shares) << shares.error().text;
    });
  }
}

TEST(Exchange, keeps_messages_that_come_during_an_exchange) {
  Party party(3);
  party.run([](SideChannel& side_channel) {
    ASSERT_TRUE(side_channel.send(kEveryone, 5, pattern(side_channel.rank(), 99)));
    ASSERT_TRUE(side_channel.barrier(soon()));
    std::vector<bool> heard(3);
    for (const Event& event : test::wait_for_events(side_channel, 2)) {
      EXPECT_EQ(event.kind, Event::Kind::message);
      EXPECT_EQ(event.message_kind, 5);
      EXPECT_EQ(event.bytes, pattern(event.rank, 99));
      heard[event.rank] = true;
    }
    EXPECT_EQ(std::count(heard.begin(), heard.end(), true), 2);
    EXPECT_FALSE(heard[side_channel.rank()]);
    ASSERT_TRUE(side_channel.barrier(soon()));
  });
}

}  // namespace
}  // namespace ringbolt::bootstrap
