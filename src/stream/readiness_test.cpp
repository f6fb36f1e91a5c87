#include "stream/readiness.h"

#include <gtest/gtest.h>
#include <poll.h>

#include "stream/stream_test_support.h"

namespace ringbolt::stream {
namespace {

using test::Pair;
using test::patterned;
using test::soon;
using test::World;

bool is_readable(int fd, int timeout_ms = 0) {
  pollfd one{fd, POLLIN, 0};
  return ::poll(&one, 1, timeout_ms) == 1;
}

/// Until it stays quiet: words of the connection itself wake a program, too.
void settle(Stream& stream) {
  for (int i = 0; i < 100 && is_readable(stream.fd(), 20); ++i) {
    static_cast<void>(stream.await(0, Deadline::now()));
  }
}

const int kLongMs = static_cast<int>(test::limit_ms());

TEST(StreamDescriptor, is_readable_while_bytes_are_unread) {
  const World world({.stream = {.keepalive_ms = 0}});
  const Pair pair(world);
  const int fd = pair.client->fd();
  settle(*pair.client);
  EXPECT_FALSE(is_readable(fd));
  ASSERT_EQ(test::write(*pair.server, patterned(10)), 10U);
  EXPECT_TRUE(is_readable(fd, kLongMs));
  std::array<std::byte, 4> some{};
  ASSERT_EQ(pair.client->read(some, Deadline::now()), 4U);
  EXPECT_TRUE(is_readable(fd)) << "six are left";
  EXPECT_EQ(pair.client->consume(6), 0);
  settle(*pair.client);
  EXPECT_FALSE(is_readable(fd));
}

TEST(StreamDescriptor, tells_also_what_another_call_has_found) {
  const World world({.stream = {.keepalive_ms = 0}});
  const Pair pair(world);
  const int fd = pair.client->fd();
  settle(*pair.client);
  ASSERT_EQ(test::write(*pair.server, patterned(10)), 10U);
  ASSERT_TRUE(is_readable(fd, kLongMs));
  // This one drains the completion queue, and does not read.
  ASSERT_EQ(test::write(*pair.client, patterned(1)), 1U);
  static_cast<void>(pair.client->await(kWritable, Deadline::now()));
  EXPECT_TRUE(is_readable(fd));
}

TEST(StreamDescriptor, short_write_asks_for_room_and_is_told_of_it_once) {
  const World world({.stream = {.receive_bytes = 4096, .keepalive_ms = 0}});
  const Pair pair(world);
  const int fd = pair.client->fd();
  ASSERT_TRUE(pair.client->await(kWritable, soon()));
  ASSERT_EQ(test::write(*pair.client, patterned(10'000), Deadline::now()), 4096U);
  settle(*pair.client);
  EXPECT_FALSE(is_readable(fd));
  EXPECT_EQ(test::read_all(*pair.server, 4096), patterned(4096));
  EXPECT_TRUE(is_readable(fd, kLongMs));
  EXPECT_EQ(pair.client->await(kWritable, soon()).value() & kWritable, kWritable);
  settle(*pair.client);
  EXPECT_FALSE(is_readable(fd)) << "it was told";
  pair.client->want(kReadable | kWritable);
  EXPECT_TRUE(is_readable(fd)) << "there is room, and the program wants to know for good";
}

TEST(StreamDescriptor, short_write_of_registered_memory_asks_for_room_too) {
  const World world({.stream = {.receive_bytes = 4096, .keepalive_ms = 0}});
  const Pair pair(world);
  const int fd = pair.client->fd();
  ASSERT_TRUE(pair.client->await(kWritable, soon()));
  auto data = patterned(10'000);
  ASSERT_EQ(pair.client->register_memory(data), 0);
  ASSERT_EQ(pair.client->write_registered(data, Deadline::now()), 4096U);
  ASSERT_EQ(pair.client->await_sent(soon()), 0);
  settle(*pair.client);
  EXPECT_FALSE(is_readable(fd));
  EXPECT_EQ(test::read_all(*pair.server, 4096), patterned(4096));
  EXPECT_TRUE(is_readable(fd, kLongMs));
}

TEST(StreamDescriptor, tells_of_the_end_and_goes_on_doing_so) {
  const World world;
  Pair pair(world);
  const int fd = pair.client->fd();
  settle(*pair.client);
  pair.server.reset();
  EXPECT_TRUE(is_readable(fd, kLongMs));
  const auto events = pair.client->await(kReadable, soon());
  ASSERT_TRUE(events);
  EXPECT_EQ(*events & (kEnded | kReadable), kEnded | kReadable);
  EXPECT_TRUE(is_readable(fd));
}

TEST(StreamDescriptor, leads_through_connecting) {
  const World world;
  const auto client = world.begin();
  const int fd = client->fd();
  std::unique_ptr<Stream> server;
  const uint64_t until = base::now_ns() + test::limit_ms() * 1'000'000;
  for (bool is_connected = false; !is_connected && base::now_ns() < until;) {
    if (is_readable(fd, 10)) {
      const auto events = client->await(kConnected, Deadline::now());
      is_connected = events && (*events & kConnected) != 0;
    }
    if (!server) {
      if (auto made = world.listener->accept(Deadline::now())) {
        server = std::move(*made);
      }
    }
  }
  ASSERT_NE(server, nullptr);
  EXPECT_EQ(client->await_connected(soon()), 0);
}

}  // namespace
}  // namespace ringbolt::stream
