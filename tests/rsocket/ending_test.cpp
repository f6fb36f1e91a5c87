#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <thread>

#include "pair.h"

namespace ringbolt::rsocket_test {
namespace {

ssize_t receive_one(int fd) {
  char byte = 0;
  return rrecv(fd, &byte, 1, 0);
}

TEST(HalfClose, ends_one_direction_after_its_last_byte) {
  const Pair pair;
  const auto out = pattern_bytes(0, 50'000);
  ASSERT_EQ(rsend(pair.client.fd(), out.data(), out.size(), 0), 50'000);
  ASSERT_EQ(rshutdown(pair.client.fd(), SHUT_WR), 0) << std::strerror(errno);
  std::vector<std::byte> in(60'000);
  EXPECT_EQ(rrecv(pair.server.fd(), in.data(), in.size(), MSG_WAITALL), 50'000);
  EXPECT_EQ(first_difference(in, 50'000, 0), 50'000U);
  EXPECT_EQ(receive_one(pair.server.fd()), 0);
  EXPECT_EQ(receive_one(pair.server.fd()), 0) << "the end stays the end";
}

TEST(HalfClose, leaves_the_other_direction) {
  const Pair pair;
  ASSERT_EQ(rshutdown(pair.client.fd(), SHUT_WR), 0);
  EXPECT_EQ(receive_one(pair.server.fd()), 0);
  std::string problem;
  std::thread sending([&] { problem = send_pattern(pair.server.fd(), 3'000'000, 10'000); });
  EXPECT_EQ(receive_pattern(pair.client.fd(), 3'000'000, 20'000), "");
  sending.join();
  EXPECT_EQ(problem, "");
  ASSERT_EQ(rshutdown(pair.server.fd(), SHUT_WR), 0);
  EXPECT_EQ(receive_one(pair.client.fd()), 0);
}

TEST(HalfClose, refuses_to_send_afterwards) {
  const Pair pair;
  ASSERT_EQ(rshutdown(pair.client.fd(), SHUT_WR), 0);
  EXPECT_EQ(rsend(pair.client.fd(), "x", 1, 0), -1);
  EXPECT_EQ(errno, EPIPE);
}

TEST(HalfClose, of_the_reading_side_ends_reading_at_once) {
  const Pair pair;
  ASSERT_EQ(rshutdown(pair.client.fd(), SHUT_RD), 0);
  EXPECT_EQ(receive_one(pair.client.fd()), 0);
  EXPECT_EQ(rsend(pair.client.fd(), "x", 1, 0), 1);
  EXPECT_EQ(receive_one(pair.server.fd()), 1);
}

TEST(Close, lets_the_peer_read_what_was_sent_before) {
  Pair pair;
  const auto out = pattern_bytes(0, 60'000);
  ASSERT_EQ(rsend(pair.client.fd(), out.data(), out.size(), 0), 60'000);
  pair.client.close();
  std::vector<std::byte> in(60'000);
  EXPECT_EQ(rrecv(pair.server.fd(), in.data(), in.size(), MSG_WAITALL), 60'000);
  EXPECT_EQ(first_difference(in, 60'000, 0), 60'000U);
  EXPECT_EQ(receive_one(pair.server.fd()), 0);
  EXPECT_EQ(rsend(pair.server.fd(), "x", 1, 0), -1);
  EXPECT_EQ(errno, ECONNRESET);
}

TEST(Close, of_both_at_once_hangs_nowhere) {
  for (int i = 0; i < 20; ++i) {
    Pair pair;
    ASSERT_EQ(rsend(pair.client.fd(), "x", 1, 0), 1);
    std::thread other([&] { pair.server.close(); });
    pair.client.close();
    other.join();
  }
}

TEST(Close, ends_a_receive_that_waits_at_the_peer) {
  Pair pair;
  std::thread waiting([&] { EXPECT_EQ(receive_one(pair.server.fd()), 0); });
  pair.client.close();
  waiting.join();
}

TEST(Shutdown, ends_a_receive_that_waits_in_another_thread) {
  const Pair pair;
  std::thread waiting([&] { EXPECT_EQ(receive_one(pair.server.fd()), 0); });
  EXPECT_EQ(rshutdown(pair.server.fd(), SHUT_RDWR), 0);
  waiting.join();
}

TEST(Close, of_the_peer_ends_a_send_that_waits_for_room) {
  Pair pair;
  std::thread sending([&] {
    EXPECT_NE(send_pattern(pair.client.fd(), 10'000'000, 10'000), "") << "nobody reads: not all can have been sent";
    EXPECT_EQ(errno, ECONNRESET);
  });
  std::vector<std::byte> in(50'000);
  EXPECT_EQ(rrecv(pair.server.fd(), in.data(), in.size(), MSG_WAITALL), 50'000);
  pair.server.close();
  sending.join();
}

TEST(Close, of_a_listener_refuses_who_waits) {
  Listener listener;
  Socket client(rsocket(listener.place.family(), SOCK_STREAM, 0));
  rfcntl(client.fd(), F_SETFL, O_NONBLOCK);
  EXPECT_EQ(rconnect(client.fd(), listener.place.get(), listener.place.length), -1);
  EXPECT_EQ(errno, EINPROGRESS);
  // Until the request is there: both sides have something to do.
  std::array<pollfd, 2> waits{pollfd{client.fd(), POLLOUT, 0}, {listener.socket.fd(), POLLIN, 0}};
  ASSERT_EQ(rpoll(waits.data(), waits.size(), 10'000), 1);
  ASSERT_EQ(waits[1].revents, POLLIN);
  listener.socket.close();
  ASSERT_EQ(rpoll(waits.data(), 1, 10'000), 1);
  int error = 0;
  socklen_t length = sizeof error;
  EXPECT_EQ(rgetsockopt(client.fd(), SOL_SOCKET, SO_ERROR, &error, &length), 0);
  EXPECT_EQ(error, ECONNREFUSED);
}

TEST(Timeout, ends_a_receive_and_an_accept) {
  const timeval soon{0, 20'000};
  const Pair pair;
  ASSERT_EQ(rsetsockopt(pair.server.fd(), SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon), 0);
  EXPECT_EQ(receive_one(pair.server.fd()), -1);
  EXPECT_EQ(errno, EAGAIN);
  const Listener listener;
  ASSERT_EQ(rsetsockopt(listener.socket.fd(), SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon), 0);
  EXPECT_EQ(raccept(listener.socket.fd(), nullptr, nullptr), -1);
  EXPECT_EQ(errno, EAGAIN);
}

TEST(Timeout, ends_a_send_that_finds_no_room) {
  const timeval soon{0, 20'000};
  const Pair pair;
  ASSERT_EQ(rsetsockopt(pair.client.fd(), SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof soon), 0);
  EXPECT_NE(send_pattern(pair.client.fd(), 10'000'000, 100'000), "");
  EXPECT_EQ(errno, EAGAIN);
}

}  // namespace
}  // namespace ringbolt::rsocket_test
