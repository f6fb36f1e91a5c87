#include "output.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>

#include <gtest/gtest.h>

#include "base/unique_fd.h"

namespace ringbolt::tools {
namespace {

std::string fed(std::initializer_list<std::string_view> pieces) {
  LineSplitter lines("n0 | ");
  std::string out;
  for (const std::string_view piece : pieces) {
    lines.feed(piece, out);
  }
  lines.finish(out);
  return out;
}

TEST(LineSplitter, prefixes_each_line_however_it_arrives) {
  EXPECT_EQ(fed({}), "");
  EXPECT_EQ(fed({"a\nb\n"}), "n0 | a\nn0 | b\n");
  EXPECT_EQ(fed({"a", "", "b", "\n", "c\n"}), "n0 | ab\nn0 | c\n");
  EXPECT_EQ(fed({"\n\n"}), "n0 | \nn0 | \n");
}

TEST(LineSplitter, ends_the_last_line) { EXPECT_EQ(fed({"a\nb"}), "n0 | a\nn0 | b\n"); }

TEST(LineSplitter, passes_any_byte) {
  using namespace std::string_view_literals;
  EXPECT_EQ(fed({"\0\xff\r\n"sv}), std::string("n0 | \0\xff\r\n", 9));
}

TEST(LineSplitter, holds_back_what_is_no_line_yet) {
  LineSplitter lines("");
  std::string out;
  lines.feed("begun", out);
  EXPECT_EQ(out, "");
  lines.feed(" and ended\nnext", out);
  EXPECT_EQ(out, "begun and ended\n");
}

TEST(LineSplitter, bounds_a_line_without_end) {
  LineSplitter lines("");
  std::string out;
  const std::string piece(LineSplitter::kMaxLineBytes / 2, 'x');
  for (int i = 0; i < 6; ++i) {
    lines.feed(piece, out);
  }
  const std::string line = std::string(LineSplitter::kMaxLineBytes, 'x') + "\n";
  EXPECT_EQ(out, line + line + line);
}

TEST(OutputQueue, writes_in_order_and_sees_a_reader_go) {
  int fds[2];
  ASSERT_EQ(::pipe2(fds, O_CLOEXEC), 0);
  base::UniqueFd reader(fds[0]);
  const base::UniqueFd writer(fds[1]);
  const auto old_handler = ::signal(SIGPIPE, SIG_IGN);
  OutputQueue queue(writer.get());
  queue.bytes() = std::string(5000, 'a') + "b";
  while (!queue.is_empty()) {
    ASSERT_TRUE(queue.write_some());
  }
  std::string got(5001, '\0');
  ASSERT_EQ(::read(reader.get(), got.data(), got.size()), 5001);
  EXPECT_EQ(got, std::string(5000, 'a') + "b");
  reader.reset();
  queue.bytes() = "c";
  EXPECT_FALSE(queue.write_some());
  EXPECT_EQ(queue.error(), EPIPE);
  ::signal(SIGPIPE, old_handler);
}

}  // namespace
}  // namespace ringbolt::tools
