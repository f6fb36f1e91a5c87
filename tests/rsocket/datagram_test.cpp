#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "pair.h"

namespace ringbolt::rsocket_test {
namespace {

constexpr int kLongMs = 20'000;

/// A datagram socket at any port of the tests' address, and its name.
struct End {
  End() {
    const Place any = Place::with_port(0);
    socket = Socket(rsocket(any.family(), SOCK_DGRAM, 0));
    EXPECT_EQ(rbind(socket.fd(), any.get(), any.length), 0) << std::strerror(errno);
    place.length = sizeof place.storage;
    EXPECT_EQ(rgetsockname(socket.fd(), reinterpret_cast<sockaddr*>(&place.storage), &place.length), 0);
  }
  int fd() const { return socket.fd(); }

  Socket socket;
  Place place;
};

/// Sends `bytes` and waits until it has come; the socket is reliable enough for one datagram at a time within a host.
void exchange(const End& from, const End& to, const std::vector<std::byte>& bytes) {
  ASSERT_EQ(rsendto(from.fd(), bytes.data(), bytes.size(), 0, to.place.get(), to.place.length),
            static_cast<ssize_t>(bytes.size()))
      << std::strerror(errno);
  pollfd wait{to.fd(), POLLIN, 0};
  ASSERT_EQ(rpoll(&wait, 1, kLongMs), 1);
  std::vector<std::byte> in(4096);
  Place sender;
  sender.length = sizeof sender.storage;
  const ssize_t got =
      rrecvfrom(to.fd(), in.data(), in.size(), 0, reinterpret_cast<sockaddr*>(&sender.storage), &sender.length);
  ASSERT_EQ(got, static_cast<ssize_t>(bytes.size()));
  in.resize(bytes.size());
  EXPECT_EQ(in, bytes);
  EXPECT_EQ(sender.port(), from.place.port());
  EXPECT_EQ(std::memcmp(&sender.storage, &from.place.storage, sender.length), 0);
}

TEST(Datagram, arrives_whole_with_its_sender) {
  const End a;
  const End b;
  // The first ones go over UDP, the later ones over the queue pairs that those told of.
  for (uint64_t round = 0; round < 200; ++round) {
    exchange(a, b, pattern_bytes(round, 1 + round * 10));
    exchange(b, a, pattern_bytes(round, 2000 - round * 10));
  }
}

TEST(Datagram, of_no_bytes_arrives_too) {
  const End a;
  const End b;
  for (int round = 0; round < 5; ++round) {
    exchange(a, b, {});
    exchange(b, a, {});
  }
}

TEST(Datagram, that_is_too_long_is_refused) {
  const End a;
  const std::vector<std::byte> bytes(2048);
  EXPECT_EQ(rsendto(a.fd(), bytes.data(), bytes.size(), 0, a.place.get(), a.place.length), -1);
  EXPECT_EQ(errno, EMSGSIZE);
}

TEST(Datagram, needs_to_know_where_to) {
  const End a;
  EXPECT_EQ(rsend(a.fd(), "x", 1, 0), -1);
  EXPECT_EQ(errno, EDESTADDRREQ);
  EXPECT_EQ(rlisten(a.fd(), 1), -1);
  EXPECT_EQ(errno, EOPNOTSUPP);
  char byte = 0;
  EXPECT_EQ(rrecv(a.fd(), &byte, 1, MSG_DONTWAIT), -1);
  EXPECT_EQ(errno, EAGAIN);
}

TEST(Datagram, from_a_stranger_does_not_reach_a_connected_socket) {
  const End a;
  const End b;
  const End stranger;
  ASSERT_EQ(rconnect(b.fd(), a.place.get(), a.place.length), 0) << std::strerror(errno);
  ASSERT_EQ(rsend(b.fd(), "hello", 5, 0), 5);
  std::array<char, 8> in{};
  ASSERT_EQ(rrecv(a.fd(), in.data(), in.size(), 0), 5);
  ASSERT_EQ(rsendto(stranger.fd(), "bad", 3, 0, b.place.get(), b.place.length), 3);
  ASSERT_EQ(rsendto(a.fd(), "good", 4, 0, b.place.get(), b.place.length), 4);
  pollfd wait{b.fd(), POLLIN, 0};
  ASSERT_EQ(rpoll(&wait, 1, kLongMs), 1);
  ASSERT_EQ(rrecv(b.fd(), in.data(), in.size(), 0), 4);
  EXPECT_EQ(std::memcmp(in.data(), "good", 4), 0);
}

/// What a program leaves in sin_zero, or behind a shorter address, means nothing.
TEST(Datagram, reaches_who_connected_to_an_address_with_garbage_around_it) {
  const End a;
  const End b;
  sockaddr_storage dirty;
  std::memset(&dirty, 0xa5, sizeof dirty);
  std::memcpy(&dirty, a.place.get(), a.place.family() == AF_INET ? offsetof(sockaddr_in, sin_zero) : a.place.length);
  ASSERT_EQ(rconnect(b.fd(), reinterpret_cast<const sockaddr*>(&dirty), sizeof dirty), 0) << std::strerror(errno);
  std::array<char, 8> in{};
  for (int round = 0; round < 3; ++round) {  // over UDP first, then over the queue pairs
    ASSERT_EQ(rsend(b.fd(), "ping", 4, 0), 4);
    ASSERT_EQ(rrecv(a.fd(), in.data(), in.size(), 0), 4);
    ASSERT_EQ(rsendto(a.fd(), "pong", 4, 0, b.place.get(), b.place.length), 4);
    pollfd wait{b.fd(), POLLIN, 0};
    ASSERT_EQ(rpoll(&wait, 1, kLongMs), 1);
    EXPECT_EQ(rrecv(b.fd(), in.data(), in.size(), 0), 4);
  }
}

TEST(Datagram, is_cut_to_what_the_reader_asks_for) {
  const End a;
  const End b;
  ASSERT_EQ(rsendto(a.fd(), "abcdef", 6, 0, b.place.get(), b.place.length), 6);
  std::array<char, 4> in{};
  EXPECT_EQ(rrecv(b.fd(), in.data(), 3, 0), 3);
  EXPECT_STREQ(in.data(), "abc");
  EXPECT_EQ(rrecv(b.fd(), in.data(), 3, MSG_DONTWAIT), -1) << "the rest is gone";
}

}  // namespace
}  // namespace ringbolt::rsocket_test
