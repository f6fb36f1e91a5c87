// rsockets, with each piece of memory that one of their calls needs refused in turn.
#include <gtest/gtest.h>
#include <poll.h>

#include <sys/mman.h>

#include <array>
#include <cstring>

#include "../rsocket/pair.h"
#include "failing_memory.h"

namespace ringbolt::border {
namespace {

using rsocket_test::Pair;
using rsocket_test::Place;
using rsocket_test::Socket;

constexpr int kLimitMs = 20'000;

int error_of_size(ssize_t answer) { return answer >= 0 ? 0 : errno; }

TEST(SocketBorder, sockets) {
  const Place any = Place::with_port(0);
  for (int i = 0; i < 100; ++i) {  // the last event channels are kept for a while
    const Socket kept(rsocket(any.family(), SOCK_STREAM, 0));
  }
  for (const int type : {SOCK_STREAM, SOCK_DGRAM}) {
    int made = -1;
    survive(
        "rsocket",
        [&] {
          made = rsocket(any.family(), type, 0);
          return error_of_size(made);
        },
        [&] { EXPECT_EQ(rclose(made), 0); });
    Socket socket;
    const auto renew = [&] { socket = Socket(rsocket(any.family(), type, 0)); };
    renew();
    survive(
        "rbind", [&] { return error_of(rbind(socket.fd(), any.get(), any.length)); }, renew);
    succeed(
        "rclose", [&] { made = rsocket(any.family(), type, 0); }, [&] { return error_of(rclose(made)); });
  }
  Socket socket;
  const auto bound = [&] {
    socket = Socket(rsocket(any.family(), SOCK_STREAM, 0));
    ASSERT_EQ(rbind(socket.fd(), any.get(), any.length), 0);
  };
  bound();
  survive(
      "rlisten", [&] { return error_of(rlisten(socket.fd(), 8)); }, bound);
}

TEST(SocketBorder, streams) {
  const Pair pair({{SOL_RDMA, RDMA_IOMAPSIZE, 4}});
  std::array<char, 256> bytes{};
  const auto receive = [&] {
    EXPECT_EQ(rrecv(pair.server.fd(), bytes.data(), bytes.size(), MSG_WAITALL), static_cast<ssize_t>(bytes.size()));
  };
  survive(
      "rsend", [&] { return error_of_size(rsend(pair.client.fd(), bytes.data(), bytes.size(), 0)); }, receive);
  const auto send = [&] {
    EXPECT_EQ(rsend(pair.client.fd(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  };
  send();
  survive(
      "rrecv", [&] { return error_of_size(rrecv(pair.server.fd(), bytes.data(), bytes.size(), MSG_WAITALL)); }, send);
  std::array<pollfd, 40> wanted{};
  for (pollfd& one : wanted) {
    one = {pair.server.fd(), POLLIN, 0};
  }
  survive(
      "rpoll", [&] { return error_of_size(rpoll(wanted.data(), wanted.size(), 0)); }, kNothing);
  survive(
      "riomap", [&] { return error_of_size(riomap(pair.server.fd(), bytes.data(), bytes.size(), PROT_WRITE, 0, -1)); },
      [&] { EXPECT_EQ(riounmap(pair.server.fd(), bytes.data(), bytes.size()), 0); });
}

TEST(SocketBorder, datagrams) {
  const Place any = Place::with_port(0);
  uint32_t nth = 0;
  for (bool has_struck = true; has_struck && !HasFailure();) {
    SCOPED_TRACE(++nth);
    const Socket from(rsocket(any.family(), SOCK_DGRAM, 0));
    const Socket to(rsocket(any.family(), SOCK_DGRAM, 0));
    ASSERT_EQ(rbind(to.fd(), any.get(), any.length), 0);
    Place place = any;
    ASSERT_EQ(rgetsockname(to.fd(), reinterpret_cast<sockaddr*>(&place.storage), &place.length), 0);
    const auto send = [&] { return error_of_size(rsendto(from.fd(), "x", 1, 0, place.get(), place.length)); };
    int error = 0;
    {
      const Shortage shortage(nth);
      error = send();
      has_struck = shortage.has_struck();
    }
    EXPECT_TRUE(error == 0 || (error == ENOMEM && has_struck)) << std::strerror(error);
    EXPECT_EQ(send(), 0) << std::strerror(errno);
    char byte = 0;
    pollfd readable{to.fd(), POLLIN, 0};
    ASSERT_EQ(rpoll(&readable, 1, kLimitMs), 1);
    EXPECT_EQ(rrecv(to.fd(), &byte, 1, 0), 1);
    EXPECT_EQ(byte, 'x');
  }
}

}  // namespace
}  // namespace ringbolt::border
