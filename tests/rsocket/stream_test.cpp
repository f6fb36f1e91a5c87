#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <thread>

#include "pair.h"

namespace ringbolt::rsocket_test {
namespace {

TEST(Stream, carries_bytes_both_ways) {
  const Pair pair;
  EXPECT_EQ(rsend(pair.client.fd(), "hello", 5, 0), 5);
  std::array<char, 16> in{};
  EXPECT_EQ(rrecv(pair.server.fd(), in.data(), in.size(), 0), 5);
  EXPECT_STREQ(in.data(), "hello");
  EXPECT_EQ(rwrite(pair.server.fd(), "world!", 6), 6);
  EXPECT_EQ(rread(pair.client.fd(), in.data(), in.size()), 6);
  EXPECT_STREQ(in.data(), "world!");
}

TEST(Stream, gives_out_in_parts_what_came_in_one_piece) {
  const Pair pair;
  const auto out = pattern_bytes(0, 1000);
  ASSERT_EQ(rsend(pair.client.fd(), out.data(), out.size(), 0), 1000);
  std::vector<std::byte> in(1000);
  for (size_t at = 0; at < in.size();) {
    const size_t wanted = std::min<size_t>(7, in.size() - at);
    const ssize_t got = rrecv(pair.server.fd(), in.data() + at, wanted, 0);
    ASSERT_GT(got, 0);
    at += static_cast<size_t>(got);
  }
  EXPECT_EQ(in, out);
}

struct Sizes {
  uint64_t total;
  size_t send_piece;
  size_t receive_piece;
};
void PrintTo(const Sizes& sizes, std::ostream* out) {
  *out << sizes.total << " in " << sizes.send_piece << " to " << sizes.receive_piece;
}

class StreamTransfer : public testing::TestWithParam<Sizes> {};

TEST_P(StreamTransfer, keeps_every_byte_in_its_place) {
  const auto [total, send_piece, receive_piece] = GetParam();
  const Pair pair;
  std::string problem;
  std::thread sending(
      [&, total = total, piece = send_piece] { problem = send_pattern(pair.client.fd(), total, piece); });
  EXPECT_EQ(receive_pattern(pair.server.fd(), total, receive_piece), "");
  sending.join();
  EXPECT_EQ(problem, "");
}

INSTANTIATE_TEST_SUITE_P(Sizes, StreamTransfer,
                         testing::Values(Sizes{1, 1, 1}, Sizes{5000, 1, 1}, Sizes{20'000, 1, 65536}, Sizes{64, 64, 64},
                                         Sizes{65, 65, 64}, Sizes{300'000, 4097, 1}, Sizes{1 << 17, 1 << 17, 1 << 17},
                                         Sizes{(1 << 17) + 1, 1 << 20, 1 << 20}, Sizes{20'000'003, 65536, 65536},
                                         Sizes{20'000'003, 1'000'003, 12'345}, Sizes{20'000'003, 12'347, 1'000'003}));

class StreamBuffers : public testing::TestWithParam<std::vector<Option>> {};

TEST_P(StreamBuffers, of_any_size_carry_the_stream) {
  const Pair pair(GetParam());
  std::string problem;
  std::thread sending([&] { problem = send_pattern(pair.client.fd(), 1'000'003, 30'011); });
  EXPECT_EQ(receive_pattern(pair.server.fd(), 1'000'003, 40'009), "");
  sending.join();
  EXPECT_EQ(problem, "");
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, StreamBuffers,
    testing::Values(std::vector<Option>{{SOL_SOCKET, SO_SNDBUF, 1}, {SOL_SOCKET, SO_RCVBUF, 1}},
                    std::vector<Option>{{SOL_SOCKET, SO_SNDBUF, 5001}, {SOL_SOCKET, SO_RCVBUF, 3333}},
                    std::vector<Option>{{SOL_SOCKET, SO_SNDBUF, 1 << 20}, {SOL_SOCKET, SO_RCVBUF, 1 << 22}},
                    std::vector<Option>{{SOL_RDMA, RDMA_SQSIZE, 1}, {SOL_RDMA, RDMA_RQSIZE, 1}},
                    std::vector<Option>{{SOL_RDMA, RDMA_SQSIZE, 4096}, {SOL_RDMA, RDMA_RQSIZE, 4096}},
                    std::vector<Option>{{SOL_RDMA, RDMA_INLINE, 0}},
                    std::vector<Option>{{SOL_RDMA, RDMA_INLINE, 256}}));

TEST(Stream, goes_both_ways_at_once) {
  const Pair pair;
  constexpr uint64_t kTotal = 10'000'000;
  std::array<std::string, 4> problems;
  std::array<std::thread, 4> threads{
      std::thread([&] { problems[0] = send_pattern(pair.client.fd(), kTotal, 50'000, 1); }),
      std::thread([&] { problems[1] = receive_pattern(pair.client.fd(), kTotal, 70'000, 2); }),
      std::thread([&] { problems[2] = send_pattern(pair.server.fd(), kTotal, 60'000, 2); }),
      std::thread([&] { problems[3] = receive_pattern(pair.server.fd(), kTotal, 80'000, 1); })};
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(problems, (std::array<std::string, 4>{}));
}

TEST(Stream, waits_for_all_where_it_is_asked_to) {
  const Pair pair;
  const auto out = pattern_bytes(0, 100'000);
  std::thread sending([&] {
    for (size_t at = 0; at < out.size(); at += 1000) {
      EXPECT_EQ(rsend(pair.client.fd(), out.data() + at, 1000, 0), 1000);
    }
  });
  std::vector<std::byte> in(out.size());
  EXPECT_EQ(rrecv(pair.server.fd(), in.data(), in.size(), MSG_WAITALL), 100'000);
  sending.join();
  EXPECT_EQ(in, out);
}

TEST(Stream, shows_bytes_without_taking_them) {
  const Pair pair;
  ASSERT_EQ(rsend(pair.client.fd(), "abcdef", 6, 0), 6);
  std::array<char, 4> in{};
  EXPECT_EQ(rrecv(pair.server.fd(), in.data(), 3, MSG_PEEK), 3);
  EXPECT_STREQ(in.data(), "abc");
  EXPECT_EQ(rrecv(pair.server.fd(), in.data(), 3, 0), 3);
  EXPECT_STREQ(in.data(), "abc");
  EXPECT_EQ(rrecv(pair.server.fd(), in.data(), 3, MSG_PEEK), 3);
  EXPECT_STREQ(in.data(), "def");
}

TEST(Stream, gathers_and_scatters) {
  const Pair pair;
  auto out = pattern_bytes(0, 100'000);
  const std::array<iovec, 4> from{
      iovec{out.data(), 1}, {out.data() + 1, 0}, {out.data() + 1, 69'999}, {out.data() + 70'000, 30'000}};
  std::thread sending([&] { EXPECT_EQ(rwritev(pair.client.fd(), from.data(), 4), 100'000); });
  std::vector<std::byte> in(100'000);
  for (size_t at = 0; at < in.size();) {
    const size_t first = std::min<size_t>(10, in.size() - at);
    std::array<iovec, 2> to{iovec{in.data() + at, first}, {in.data() + at + first, in.size() - at - first}};
    msghdr message{};
    message.msg_iov = to.data();
    message.msg_iovlen = to.size();
    const ssize_t got = rrecvmsg(pair.server.fd(), &message, 0);
    ASSERT_GT(got, 0);
    at += static_cast<size_t>(got);
  }
  sending.join();
  EXPECT_EQ(in, out);
}

TEST(Stream, of_no_bytes_is_no_message) {
  const Pair pair;
  EXPECT_EQ(rsend(pair.client.fd(), "", 0, 0), 0);
  EXPECT_EQ(rrecv(pair.server.fd(), nullptr, 0, MSG_DONTWAIT), 0);
  char byte = 0;
  EXPECT_EQ(rrecv(pair.server.fd(), &byte, 1, MSG_DONTWAIT), -1);
  EXPECT_EQ(errno, EAGAIN);
}

TEST(Stream, refuses_what_streams_do_not_have) {
  const Pair pair;
  const Place place = Place::with_port(1);
  EXPECT_EQ(rsendto(pair.client.fd(), "x", 1, 0, place.get(), place.length), -1);
  EXPECT_EQ(errno, EISCONN);
  EXPECT_EQ(rsend(pair.client.fd(), "x", 1, MSG_OOB), -1);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_EQ(rconnect(pair.client.fd(), place.get(), place.length), -1);
  EXPECT_EQ(errno, EISCONN);
  EXPECT_EQ(raccept(pair.client.fd(), nullptr, nullptr), -1);
  EXPECT_EQ(errno, EINVAL);
}

TEST(Stream, that_is_not_connected_says_so) {
  const Socket socket(rsocket(AF_INET, SOCK_STREAM, 0));
  ASSERT_GE(socket.fd(), 0);
  char byte = 0;
  EXPECT_EQ(rsend(socket.fd(), "x", 1, 0), -1);
  EXPECT_EQ(errno, ENOTCONN);
  EXPECT_EQ(rrecv(socket.fd(), &byte, 1, 0), -1);
  EXPECT_EQ(errno, ENOTCONN);
  EXPECT_EQ(rshutdown(socket.fd(), SHUT_RDWR), -1);
  EXPECT_EQ(errno, ENOTCONN);
  Place place = Place::with_port(0);
  EXPECT_EQ(rgetpeername(socket.fd(), reinterpret_cast<sockaddr*>(&place.storage), &place.length), -1);
  EXPECT_EQ(errno, ENOTCONN);
}

TEST(Descriptor, of_something_else_is_refused) {
  EXPECT_EQ(rclose(-1), -1);
  EXPECT_EQ(errno, EBADF);
  EXPECT_EQ(rsend(0, "x", 1, 0), -1);
  EXPECT_EQ(errno, EBADF);
  EXPECT_EQ(rsocket(AF_UNIX, SOCK_STREAM, 0), -1);
  EXPECT_EQ(errno, EOPNOTSUPP);
}

TEST(Names, of_both_ends_match) {
  const Pair pair;
  const auto name = [](int fd, auto ask) {
    Place place;
    place.length = sizeof place.storage;
    EXPECT_EQ(ask(fd, reinterpret_cast<sockaddr*>(&place.storage), &place.length), 0);
    return place;
  };
  const Place client = name(pair.client.fd(), rgetsockname);
  const Place server = name(pair.server.fd(), rgetsockname);
  const Place clients_peer = name(pair.client.fd(), rgetpeername);
  const Place servers_peer = name(pair.server.fd(), rgetpeername);
  EXPECT_EQ(std::memcmp(&client.storage, &servers_peer.storage, client.length), 0);
  EXPECT_EQ(std::memcmp(&server.storage, &clients_peer.storage, server.length), 0);
  EXPECT_NE(client.port(), 0);
}

TEST(Connect, to_a_port_without_listener_is_refused) {
  Place nowhere;
  {
    const Listener listener;
    nowhere = listener.place;
  }
  const Socket socket(rsocket(nowhere.family(), SOCK_STREAM, 0));
  EXPECT_EQ(rconnect(socket.fd(), nowhere.get(), nowhere.length), -1);
  EXPECT_EQ(errno, ECONNREFUSED);
  EXPECT_EQ(rsend(socket.fd(), "x", 1, 0), -1);
}

TEST(Accept, tells_who_came_and_inherits_the_options) {
  const Listener listener({{SOL_SOCKET, SO_RCVBUF, 50'000}, {SOL_RDMA, RDMA_IOMAPSIZE, 3}});
  Socket client;
  std::thread connecting([&] { client = connect_to(listener.place); });
  Place peer;
  peer.length = sizeof peer.storage;
  const Socket server(raccept(listener.socket.fd(), reinterpret_cast<sockaddr*>(&peer.storage), &peer.length));
  connecting.join();
  ASSERT_GE(server.fd(), 0);
  EXPECT_EQ(peer.family(), listener.place.family());
  int value = 0;
  socklen_t length = sizeof value;
  EXPECT_EQ(rgetsockopt(server.fd(), SOL_SOCKET, SO_RCVBUF, &value, &length), 0);
  EXPECT_EQ(value, 100'000);
  EXPECT_EQ(rgetsockopt(server.fd(), SOL_RDMA, RDMA_IOMAPSIZE, &value, &length), 0);
  EXPECT_EQ(value, 3);
}

TEST(Accept, serves_many_at_once) {
  constexpr int kClients = 12;
  const Listener listener;
  std::vector<std::thread> clients;
  std::vector<std::string> problems(kClients);
  for (int i = 0; i < kClients; ++i) {
    clients.emplace_back([&, i] {
      const Socket socket = connect_to(listener.place);
      problems[static_cast<size_t>(i)] = send_pattern(socket.fd(), 100'000, 3000, static_cast<uint64_t>(i));
      const auto number = static_cast<uint8_t>(i);
      char answer = 0;
      if (rsend(socket.fd(), &number, 1, 0) != 1 || rrecv(socket.fd(), &answer, 1, 0) != 1) {
        problems[static_cast<size_t>(i)] += "; no answer";
      }
    });
  }
  for (int i = 0; i < kClients; ++i) {
    const Socket socket(raccept(listener.socket.fd(), nullptr, nullptr));
    std::vector<std::byte> in(100'001);
    ASSERT_EQ(rrecv(socket.fd(), in.data(), in.size(), MSG_WAITALL), 100'001);
    const auto number = std::to_integer<uint64_t>(in.back());
    EXPECT_EQ(first_difference(in, 100'000, 0, number), 100'000U);
    EXPECT_EQ(rsend(socket.fd(), "k", 1, 0), 1);
  }
  for (std::thread& client : clients) {
    client.join();
  }
  EXPECT_EQ(problems, std::vector<std::string>(kClients));
}

}  // namespace
}  // namespace ringbolt::rsocket_test
