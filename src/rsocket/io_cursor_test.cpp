#include "rsocket/io_cursor.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace ringbolt::rsocket {
namespace {

iovec piece(std::string& text) { return {text.data(), text.size()}; }

TEST(IoCursor, gathers_across_pieces_and_empty_ones) {
  std::string a = "abc";
  std::string none;
  std::string b = "defgh";
  const std::array pieces{piece(none), piece(a), piece(none), piece(b)};
  auto cursor = IoCursor::over(pieces.data(), pieces.size()).value();
  EXPECT_EQ(cursor.left(), 8U);
  std::string out(5, ' ');
  cursor.gather(reinterpret_cast<std::byte*>(out.data()), 5);
  EXPECT_EQ(out, "abcde");
  EXPECT_EQ(cursor.left(), 3U);
  EXPECT_EQ(cursor.in_one_piece(3), b.data() + 2);
}

TEST(IoCursor, knows_what_lies_in_one_piece) {
  std::string a = "abc";
  std::string b = "def";
  const std::array pieces{piece(a), piece(b)};
  auto cursor = IoCursor::over(pieces.data(), pieces.size()).value();
  EXPECT_EQ(cursor.in_one_piece(3), a.data());
  EXPECT_EQ(cursor.in_one_piece(4), nullptr);
  cursor.skip(3);
  EXPECT_EQ(cursor.in_one_piece(3), b.data());
}

TEST(IoCursor, scatters_across_pieces) {
  std::string a = "...";
  std::string b = "...";
  const std::array pieces{piece(a), piece(b)};
  auto cursor = IoCursor::over(pieces.data(), pieces.size()).value();
  const std::string in = "12345";
  cursor.scatter(reinterpret_cast<const std::byte*>(in.data()), 2);
  cursor.scatter(reinterpret_cast<const std::byte*>(in.data()) + 2, 3);
  EXPECT_EQ(a + b, "12345.");
}

TEST(IoCursor, refuses_lengths_that_do_not_add_up) {
  std::string a = "abc";
  const std::array pieces{piece(a), iovec{a.data(), SSIZE_MAX}};
  EXPECT_FALSE(IoCursor::over(pieces.data(), 2).has_value());
  EXPECT_EQ(IoCursor::over(nullptr, 0)->left(), 0U);
}

}  // namespace
}  // namespace ringbolt::rsocket
