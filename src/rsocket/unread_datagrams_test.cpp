#include "rsocket/unread_datagrams.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace ringbolt::rsocket {
namespace {

Address with_port(uint16_t port) {
  Address address;
  address.storage.ss_family = AF_INET;
  address.set_port(port);
  return address;
}

void add(UnreadDatagrams& unread, std::string_view text, uint16_t port = 1) {
  unread.add(with_port(port), std::as_bytes(std::span(text)));
}

/// The oldest one, as a reader with `room` bytes gets it, and what the call answers.
std::pair<std::string, size_t> take(UnreadDatagrams& unread, size_t room, bool stays = false, bool tells_whole = false,
                                    Address* from = nullptr) {
  std::string text(room, '.');
  const iovec piece{text.data(), text.size()};
  auto cursor = IoCursor::over(&piece, 1).value();
  const size_t told = unread.take(cursor, stays, tells_whole, from);
  return {text, told};
}

TEST(UnreadDatagrams, come_out_in_order_and_whole) {
  UnreadDatagrams unread;
  EXPECT_TRUE(unread.is_empty());
  add(unread, "one", 11);
  add(unread, "three", 33);
  Address from;
  EXPECT_EQ(take(unread, 5, false, false, &from), std::pair(std::string("one.."), size_t{3}));
  EXPECT_EQ(from.port(), 11U);
  EXPECT_EQ(take(unread, 5, false, false, &from), std::pair(std::string("three"), size_t{5}));
  EXPECT_EQ(from.port(), 33U);
  EXPECT_TRUE(unread.is_empty());
}

TEST(UnreadDatagrams, of_no_bytes_are_datagrams_too) {
  UnreadDatagrams unread;
  add(unread, "");
  EXPECT_FALSE(unread.is_empty());
  EXPECT_EQ(take(unread, 1).second, 0U);
  EXPECT_TRUE(unread.is_empty());
}

TEST(UnreadDatagrams, that_do_not_fit_lose_the_rest) {
  UnreadDatagrams unread;
  add(unread, "abcdef");
  add(unread, "xyz");
  EXPECT_EQ(take(unread, 2), std::pair(std::string("ab"), size_t{2}));
  EXPECT_EQ(take(unread, 3), std::pair(std::string("xyz"), size_t{3}));
}

TEST(UnreadDatagrams, tell_their_whole_length_where_that_is_wanted) {
  UnreadDatagrams unread;
  add(unread, "abcdef");
  EXPECT_EQ(take(unread, 2, true, true), std::pair(std::string("ab"), size_t{6}));
  EXPECT_EQ(take(unread, 9, false, true), std::pair(std::string("abcdef..."), size_t{6}));
  EXPECT_TRUE(unread.is_empty());
}

TEST(UnreadDatagrams, beyond_the_limit_are_dropped) {
  UnreadDatagrams unread;
  for (size_t i = 0; i < UnreadDatagrams::kMost; ++i) {
    add(unread, "in");
  }
  add(unread, "out");
  for (size_t i = 0; i < UnreadDatagrams::kMost; ++i) {
    ASSERT_FALSE(unread.is_empty()) << i;
    ASSERT_EQ(take(unread, 3).first, "in.");
  }
  EXPECT_TRUE(unread.is_empty());
  add(unread, "new");
  EXPECT_EQ(take(unread, 3).first, "new");
}

}  // namespace
}  // namespace ringbolt::rsocket
