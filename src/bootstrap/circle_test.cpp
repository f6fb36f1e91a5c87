#include "bootstrap/circle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <string>
#include <vector>

#include "base/clock.h"
#include "bootstrap/circle_test_support.h"
#include "bootstrap/frame.h"

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

TEST(Circle, of_one_needs_no_network) {
  Circle circle = Circle::join({.rank = 0, .n_ranks = 1});
  const auto shares = circle.all_gather(pattern(0, 10), soon());
  ASSERT_TRUE(shares);
  EXPECT_EQ(*shares, std::vector<std::vector<std::byte>>(1, pattern(0, 10)));
  EXPECT_TRUE(circle.barrier(soon()));
  EXPECT_TRUE(circle.send(0, 7, pattern(0, 3)));
  const auto events = circle.poll();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].bytes, pattern(0, 3));
}

TEST(Circle, gathers_shares_of_any_length) {
  Party party(5);
  party.run([](Circle& circle) {
    for (uint32_t round = 0; round < 50; ++round) {
      const auto length = [round](uint32_t rank) { return size_t{(rank * 7919 + round * 101) % 3000 * (rank % 3)}; };
      const auto shares = circle.all_gather(pattern(circle.rank() + round, length(circle.rank())), soon());
      ASSERT_TRUE(shares) << shares.error().text;
      ASSERT_EQ(shares->size(), 5U);
      for (uint32_t rank = 0; rank < 5; ++rank) {
        EXPECT_EQ((*shares)[rank], pattern(rank + round, length(rank)));
      }
      ASSERT_TRUE(circle.barrier(soon()));
    }
  });
}

TEST(Circle, gathers_the_longest_share_and_refuses_one_byte_more) {
  Party party(3);
  party.run([](Circle& circle) {
    const auto shares = circle.all_gather(pattern(circle.rank(), kMaxShareBytes), soon());
    ASSERT_TRUE(shares) << shares.error().text;
    for (uint32_t rank = 0; rank < 3; ++rank) {
      EXPECT_TRUE((*shares)[rank] == pattern(rank, kMaxShareBytes));
    }
    const auto refused = circle.all_gather(pattern(0, circle.rank() == 1 ? kMaxShareBytes + 1 : 1), soon());
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().text, HasSubstr("rank 1 gave 16777217 bytes"));
  });
}

TEST(Circle, of_64_meets) {
  Party party(64);
  const uint64_t begin = base::now_ns();
  party.run([](Circle& circle) {
    const auto shares = circle.all_gather(pattern(circle.rank(), 200), soon());
    ASSERT_TRUE(shares) << shares.error().text;
    for (uint32_t rank = 0; rank < 64; ++rank) {
      EXPECT_EQ((*shares)[rank], pattern(rank, 200));
    }
  });
  std::printf("64 ranks met, gathered and left in %.3f s\n", static_cast<double>(base::now_ns() - begin) / 1e9);
}

TEST(Circle, meets_with_a_secret_and_over_ipv6) {
  Party party(3, "::1");
  party.config.secret = "correct horse battery staple";
  party.config.group = "a group";
  party.run([](Circle& circle) { EXPECT_TRUE(circle.barrier(soon())); });
}

TEST(Circle, refuses_unequal_order_of_calls_on_all_ranks) {
  for (uint32_t odd : {0U, 1U, 2U}) {
    Party party(3);
    party.run([odd](Circle& circle) {
      ASSERT_TRUE(circle.barrier(soon()));
      std::string text;
      if (circle.rank() == odd) {
        text = circle.barrier(soon()).error().text;
      } else {
        text = circle.all_gather({}, soon()).error().text;
      }
      EXPECT_THAT(text, HasSubstr("exchange 2: rank "));
      EXPECT_THAT(text, HasSubstr("called barrier"));
      EXPECT_THAT(text, HasSubstr("called all_gather"));
      EXPECT_FALSE(circle.barrier(soon()));  // and so does every later one
    });
  }
}

TEST(Circle, deadline_names_who_is_missing_on_all_ranks) {
  Party party(4);
  party.run([](Circle& circle) {
    ASSERT_TRUE(circle.barrier(soon()));
    if (circle.rank() == 2) {
      test::wait_for_event(circle, Event::Kind::left);  // does not come to the exchange
      EXPECT_FALSE(circle.barrier(soon()));
      return;
    }
    const auto done = circle.barrier(base::now_ns() + 400'000'000);
    ASSERT_FALSE(done);
    EXPECT_THAT(done.error().text, HasSubstr("the deadline of barrier 2 has passed"));
    EXPECT_THAT(done.error().text, HasSubstr("it waits for rank 2"));
  });
}

TEST(Circle, leaving_fails_the_exchange_of_the_others) {
  for (uint32_t leaver : {0U, 1U}) {
    Party party(3);
    party.run([leaver](Circle& circle) {
      ASSERT_TRUE(circle.barrier(soon()));
      if (circle.rank() == leaver) {
        return;
      }
      const auto done = circle.barrier(soon());
      ASSERT_FALSE(done);
      EXPECT_THAT(done.error().text, HasSubstr("rank " + std::to_string(leaver) + " has left the group"));
    });
  }
}

TEST(Circle, all_may_leave_right_after_an_exchange) {
  for (int i = 0; i < 50; ++i) {
    Party party(4);
    party.run([](Circle& circle) {
      const auto shares = circle.all_gather(pattern(circle.rank(), 100'000), soon());
      EXPECT_TRUE(shares) << shares.error().text;
    });
  }
}

TEST(Circle, keeps_messages_that_come_during_an_exchange) {
  Party party(3);
  party.run([](Circle& circle) {
    ASSERT_TRUE(circle.send(kEveryone, 5, pattern(circle.rank(), 99)));
    ASSERT_TRUE(circle.barrier(soon()));
    std::vector<bool> heard(3);
    for (const Event& event : test::wait_for_events(circle, 2)) {
      EXPECT_EQ(event.kind, Event::Kind::message);
      EXPECT_EQ(event.message_kind, 5);
      EXPECT_EQ(event.bytes, pattern(event.rank, 99));
      heard[event.rank] = true;
    }
    EXPECT_EQ(std::count(heard.begin(), heard.end(), true), 2);
    EXPECT_FALSE(heard[circle.rank()]);
    ASSERT_TRUE(circle.barrier(soon()));
  });
}

}  // namespace
}  // namespace ringbolt::bootstrap
