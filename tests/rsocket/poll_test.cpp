#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <thread>

#include "pair.h"

namespace ringbolt::rsocket_test {
namespace {

constexpr int kLongMs = 20'000;

/// What rpoll says of one socket; 0 when the time is over.
short poll_one(int fd, short events, int timeout_ms) {
  pollfd wait{fd, events, 0};
  const int count = rpoll(&wait, 1, timeout_ms);
  EXPECT_EQ(count, wait.revents == 0 ? 0 : 1);
  return wait.revents;
}

/// Sends until there is no more room; returns how many bytes that took.
size_t fill(int fd) {
  const auto out = pattern_bytes(0, 65536);
  size_t filled = 0;
  ssize_t sent = 0;
  while ((sent = rsend(fd, out.data(), out.size(), MSG_DONTWAIT)) > 0) {
    filled += static_cast<size_t>(sent);
  }
  EXPECT_EQ(errno, EAGAIN);
  return filled;
}

TEST(Poll, says_what_a_fresh_connection_can_do) {
  const Pair pair;
  EXPECT_EQ(poll_one(pair.client.fd(), POLLIN | POLLOUT, kLongMs), POLLOUT);
  EXPECT_EQ(poll_one(pair.client.fd(), POLLIN, 0), 0);
}

TEST(Poll, wakes_for_data) {
  const Pair pair;
  std::thread sending([&] {
    EXPECT_EQ(poll_one(pair.client.fd(), POLLIN, kLongMs), POLLIN);
    EXPECT_EQ(rsend(pair.client.fd(), "x", 1, 0), 1);
  });
  EXPECT_EQ(rsend(pair.server.fd(), "y", 1, 0), 1);
  EXPECT_EQ(poll_one(pair.server.fd(), POLLIN, kLongMs), POLLIN);
  sending.join();
}

TEST(Poll, wakes_for_room) {
  const Pair pair;
  fill(pair.client.fd());
  EXPECT_EQ(poll_one(pair.client.fd(), POLLOUT, 0), 0);
  std::thread reading([&] {
    std::vector<std::byte> in(200'000);
    while (rrecv(pair.server.fd(), in.data(), in.size(), MSG_DONTWAIT) > 0) {
    }
  });
  EXPECT_EQ(poll_one(pair.client.fd(), POLLOUT, kLongMs), POLLOUT);
  reading.join();
}

TEST(Poll, says_that_the_peer_hung_up_after_the_last_byte) {
  Pair pair;
  ASSERT_EQ(rsend(pair.client.fd(), "x", 1, 0), 1);
  pair.client.close();
  EXPECT_EQ(poll_one(pair.server.fd(), POLLIN | POLLOUT, kLongMs) & (POLLIN | POLLHUP), POLLIN);
  char byte = 0;
  EXPECT_EQ(rrecv(pair.server.fd(), &byte, 1, 0), 1);
  EXPECT_EQ(poll_one(pair.server.fd(), POLLIN | POLLOUT, kLongMs), POLLIN | POLLHUP);
}

TEST(Poll, says_that_reading_will_find_the_end) {
  const Pair pair;
  ASSERT_EQ(rshutdown(pair.client.fd(), SHUT_WR), 0);
  EXPECT_EQ(poll_one(pair.server.fd(), POLLIN | POLLRDHUP, kLongMs), POLLIN | POLLRDHUP);
}

TEST(Poll, watches_sockets_and_other_descriptors_together) {
  const Pair pair;
  const int other = eventfd(0, EFD_CLOEXEC);
  std::array<pollfd, 3> waits{pollfd{pair.server.fd(), POLLIN, 0}, {other, POLLIN, 0}, {-1, POLLIN, 7}};
  EXPECT_EQ(rpoll(waits.data(), waits.size(), 0), 0);
  EXPECT_EQ(waits[2].revents, 0);
  std::thread ringing([&] {
    const uint64_t one = 1;
    EXPECT_EQ(write(other, &one, sizeof one), 8);
  });
  EXPECT_EQ(rpoll(waits.data(), waits.size(), kLongMs), 1);
  ringing.join();
  EXPECT_EQ(waits[0].revents, 0);
  EXPECT_EQ(waits[1].revents, POLLIN);
  EXPECT_EQ(rsend(pair.client.fd(), "x", 1, 0), 1);
  EXPECT_EQ(poll_one(pair.server.fd(), POLLIN, kLongMs), POLLIN);
  EXPECT_EQ(rpoll(waits.data(), waits.size(), kLongMs), 2);
  close(other);
}

TEST(Poll, is_woken_though_another_thread_took_the_completion) {
  for (int round = 0; round < 50; ++round) {
    const Pair pair;
    std::vector<std::byte> in(fill(pair.server.fd()));
    // One thread of the server's waits for room, and meets the data that the other one waits for.
    std::thread sending([&] { EXPECT_EQ(send_pattern(pair.server.fd(), 1, 1), ""); });
    std::thread polling([&] { EXPECT_EQ(poll_one(pair.server.fd(), POLLIN, kLongMs), POLLIN); });
    EXPECT_EQ(rsend(pair.client.fd(), "x", 1, 0), 1);
    polling.join();
    // What filled the buffer may still be under way: without it nothing makes room.
    EXPECT_EQ(rrecv(pair.client.fd(), in.data(), in.size(), MSG_WAITALL), static_cast<ssize_t>(in.size()));
    sending.join();
  }
}

TEST(Poll, follows_a_connection_that_does_not_block) {
  const Listener listener;
  const Socket client(rsocket(listener.place.family(), SOCK_STREAM, 0));
  ASSERT_EQ(rfcntl(client.fd(), F_SETFL, O_NONBLOCK), 0);
  EXPECT_EQ(rfcntl(client.fd(), F_GETFL), O_NONBLOCK);
  EXPECT_EQ(rconnect(client.fd(), listener.place.get(), listener.place.length), -1);
  EXPECT_EQ(errno, EINPROGRESS);
  ASSERT_EQ(rfcntl(listener.socket.fd(), F_SETFL, O_NONBLOCK), 0);
  Socket server;
  bool is_connected = false;
  while (!is_connected || server.fd() < 0) {
    std::array<pollfd, 2> waits{pollfd{client.fd(), POLLOUT, 0}, {listener.socket.fd(), POLLIN, 0}};
    ASSERT_GT(rpoll(waits.data(), server.fd() < 0 ? 2 : 1, kLongMs), 0);
    is_connected = is_connected || waits[0].revents == POLLOUT;
    if (waits[1].revents != 0) {
      server = Socket(raccept(listener.socket.fd(), nullptr, nullptr));
      ASSERT_GE(server.fd(), 0);
    }
  }
  int error = -1;
  socklen_t length = sizeof error;
  EXPECT_EQ(rgetsockopt(client.fd(), SOL_SOCKET, SO_ERROR, &error, &length), 0);
  EXPECT_EQ(error, 0);
  EXPECT_EQ(raccept(listener.socket.fd(), nullptr, nullptr), -1);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_EQ(rsend(client.fd(), "x", 1, 0), 1);
  EXPECT_EQ(poll_one(server.fd(), POLLIN, kLongMs), POLLIN);
}

TEST(Poll, reports_a_refused_connection) {
  Place nowhere;
  {
    const Listener listener;
    nowhere = listener.place;
  }
  const Socket client(rsocket(nowhere.family(), SOCK_STREAM, 0));
  ASSERT_EQ(rfcntl(client.fd(), F_SETFL, O_NONBLOCK), 0);
  EXPECT_EQ(rconnect(client.fd(), nowhere.get(), nowhere.length), -1);
  if (errno == EINPROGRESS) {
    EXPECT_EQ(poll_one(client.fd(), POLLOUT, kLongMs), POLLOUT | POLLERR);
    int error = 0;
    socklen_t length = sizeof error;
    EXPECT_EQ(rgetsockopt(client.fd(), SOL_SOCKET, SO_ERROR, &error, &length), 0);
    EXPECT_EQ(error, ECONNREFUSED);
  } else {
    EXPECT_EQ(errno, ECONNREFUSED);
  }
}

/// A stream through calls that never block, driven by rpoll at both ends from one thread.
TEST(Nonblocking, carries_a_stream_from_one_thread) {
  const Pair pair;
  for (const int fd : {pair.client.fd(), pair.server.fd()}) {
    ASSERT_EQ(rfcntl(fd, F_SETFL, O_NONBLOCK), 0);
  }
  constexpr uint64_t kTotal = 5'000'000;
  uint64_t sent = 0;
  uint64_t received = 0;
  std::vector<std::byte> in(30'000);
  while (received < kTotal) {
    std::array<pollfd, 2> waits{pollfd{pair.client.fd(), static_cast<short>(sent < kTotal ? POLLOUT : 0), 0},
                                {pair.server.fd(), POLLIN, 0}};
    ASSERT_GT(rpoll(waits.data(), waits.size(), kLongMs), 0);
    if ((waits[0].revents & POLLOUT) != 0) {
      const auto out = pattern_bytes(sent, static_cast<size_t>(std::min<uint64_t>(40'000, kTotal - sent)));
      const ssize_t result = rsend(pair.client.fd(), out.data(), out.size(), 0);
      ASSERT_GT(result, 0) << std::strerror(errno);
      sent += static_cast<uint64_t>(result);
    }
    if ((waits[1].revents & POLLIN) != 0) {
      const ssize_t result = rrecv(pair.server.fd(), in.data(), in.size(), 0);
      ASSERT_GT(result, 0) << std::strerror(errno);
      const auto got = static_cast<size_t>(result);
      ASSERT_EQ(first_difference(in, got, received), got);
      received += got;
    }
  }
}

TEST(Select, says_what_poll_says) {
  const Pair pair;
  ASSERT_EQ(rsend(pair.client.fd(), "x", 1, 0), 1);
  fd_set readable;
  fd_set writable;
  FD_ZERO(&readable);
  FD_ZERO(&writable);
  FD_SET(pair.server.fd(), &readable);
  FD_SET(pair.client.fd(), &readable);
  FD_SET(pair.client.fd(), &writable);
  ASSERT_EQ(poll_one(pair.server.fd(), POLLIN, kLongMs), POLLIN);
  timeval timeout{kLongMs / 1000, 0};
  EXPECT_EQ(rselect(std::max(pair.server.fd(), pair.client.fd()) + 1, &readable, &writable, nullptr, &timeout), 2);
  EXPECT_TRUE(FD_ISSET(pair.server.fd(), &readable));
  EXPECT_FALSE(FD_ISSET(pair.client.fd(), &readable));
  EXPECT_TRUE(FD_ISSET(pair.client.fd(), &writable));
}

}  // namespace
}  // namespace ringbolt::rsocket_test
