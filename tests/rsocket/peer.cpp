// One end of a connection between two processes, for the driver: both ways a stream whose bytes depend on their place.
//     rsocket_peer serve ADDRESS           prints its port, takes one connection, exchanges, prints how it ended
//     rsocket_peer connect ADDRESS PORT    the other end
//     rsocket_peer hold ADDRESS PORT       connects, says so, and waits to be killed
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "pair.h"

namespace {

using ringbolt::rsocket_test::connect_to;
using ringbolt::rsocket_test::Listener;
using ringbolt::rsocket_test::Place;
using ringbolt::rsocket_test::receive_pattern;
using ringbolt::rsocket_test::send_pattern;
using ringbolt::rsocket_test::Socket;

constexpr uint64_t kTotal = 30'000'000;

/// Both directions at once, then each side's end is seen by the other.
std::string exchange(int fd, uint64_t own_seed, uint64_t peer_seed) {
  std::string sent;
  std::thread sending([&] {
    sent = send_pattern(fd, kTotal, 70'001, own_seed);
    if (sent.empty() && rshutdown(fd, SHUT_WR) != 0) {
      sent = std::string("rshutdown: ") + std::strerror(errno);
    }
  });
  std::string received = receive_pattern(fd, kTotal, 50'021, peer_seed);
  char byte = 0;
  if (received.empty() && rrecv(fd, &byte, 1, 0) != 0) {
    received = "no end of stream";
  }
  sending.join();
  return sent + received;
}

int tell(const std::string& problem) {
  std::printf("%s\n", problem.empty() ? "every byte checked" : problem.c_str());
  return problem.empty() ? 0 : 1;
}

int serve() {
  const Listener listener;
  std::printf("port %d\n", listener.place.port());
  std::fflush(stdout);
  const Socket socket(raccept(listener.socket.fd(), nullptr, nullptr));
  return tell(exchange(socket.fd(), 1, 2));
}

int hold(const Place& place) {
  const Socket socket = connect_to(place);
  if (rsend(socket.fd(), "x", 1, 0) != 1) {
    return tell("cannot send");
  }
  std::printf("connected\n");
  std::fflush(stdout);
  for (;;) {
    pause();
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string role = argc > 2 ? argv[1] : "";
  if (role.empty() || (role != "serve" && argc < 4)) {
    std::fprintf(stderr, "usage: %s serve ADDRESS | connect ADDRESS PORT | hold ADDRESS PORT\n", argv[0]);
    return 2;
  }
  setenv("RSOCKET_TEST_ADDRESS", argv[2], 1);
  if (role == "serve") {
    return serve();
  }
  const Place place = Place::with_port(static_cast<uint16_t>(std::strtoul(argv[3], nullptr, 10)));
  if (role == "hold") {
    return hold(place);
  }
  const Socket socket = connect_to(place);
  return tell(exchange(socket.fd(), 2, 1));
}
