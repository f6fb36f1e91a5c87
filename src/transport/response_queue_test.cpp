#include "transport/response_queue.h"

#include <gtest/gtest.h>

namespace ringbolt::transport {
namespace {

TEST(ResponseQueue, merges_acknowledgements_but_not_across_data) {
  ResponseQueue queue(2);
  queue.push({.kind = Response::acknowledge, .psn = 1});
  queue.push({.kind = Response::nak, .psn = 3});
  queue.push({.kind = Response::acknowledge, .psn = 5});
  queue.push({.kind = Response::read, .psn = 6, .packets = 4});
  queue.push({.kind = Response::acknowledge, .psn = 10});
  EXPECT_EQ(queue.front().psn, 5U);
  queue.pop();
  EXPECT_EQ(queue.front().kind, Response::read);
  queue.pop();
  EXPECT_EQ(queue.front().psn, 10U);
  queue.pop();
  EXPECT_TRUE(queue.is_empty());
}

TEST(ResponseQueue, bounds_answers_with_data_whatever_comes_between) {
  ResponseQueue queue(3);
  for (uint32_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(queue.has_room());
    queue.push({.kind = Response::acknowledge, .psn = 10 * i});
    queue.push({.kind = Response::atomic, .psn = 10 * i + 1, .packets = 1});
    for (uint32_t j = 0; j < 100; ++j) {
      queue.push({.kind = Response::nak, .psn = 10 * i + 2});
    }
  }
  EXPECT_FALSE(queue.has_room());
  uint32_t items = 0;
  for (; !queue.is_empty(); queue.pop()) {
    ++items;
  }
  EXPECT_EQ(items, 7U);
  EXPECT_TRUE(queue.has_room());
}

TEST(ResponseQueue, knows_what_is_still_to_be_sent) {
  ResponseQueue queue(2);
  queue.push({.kind = Response::read, .psn = 0xfffffe, .packets = 4});
  EXPECT_TRUE(queue.covers(0xfffffe, 4));
  EXPECT_TRUE(queue.covers(1, 1));
  EXPECT_FALSE(queue.covers(1, 2));
  EXPECT_FALSE(queue.covers(0xfffffd, 1));
  queue.front().psn = 0xffffff;  // one packet was sent
  queue.front().sent = 1;
  EXPECT_FALSE(queue.covers(0xfffffe, 1));
  EXPECT_TRUE(queue.covers(0xffffff, 3));
}

}  // namespace
}  // namespace ringbolt::transport
