#include "pair.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace ringbolt::rsocket_test {
namespace {

void apply(int fd, const std::vector<Option>& options) {
  for (const Option& option : options) {
    EXPECT_EQ(rsetsockopt(fd, option.level, option.name, &option.value, sizeof option.value), 0)
        << "option " << option.level << "/" << option.name << ": " << std::strerror(errno);
  }
}

std::string said(const char* call, ssize_t result) {
  return std::string(call) + " returned " + std::to_string(result) + ": " + std::strerror(errno);
}

}  // namespace

Place Place::with_port(uint16_t port) {
  const char* text = std::getenv("RSOCKET_TEST_ADDRESS");
  text = text == nullptr ? "127.0.0.1" : text;
  Place place;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&place.storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&place.storage);
  if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    place.length = sizeof *v4;
  } else {
    EXPECT_EQ(inet_pton(AF_INET6, text, &v6->sin6_addr), 1) << text << " is no address";
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    place.length = sizeof *v6;
  }
  return place;
}

uint16_t Place::port() const {
  return ntohs(family() == AF_INET ? reinterpret_cast<const sockaddr_in*>(&storage)->sin_port
                                   : reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_port);
}

Listener::Listener(const std::vector<Option>& options) {
  const Place any = Place::with_port(0);
  socket = Socket(rsocket(any.family(), SOCK_STREAM, 0));
  EXPECT_GE(socket.fd(), 0) << std::strerror(errno);
  apply(socket.fd(), options);
  EXPECT_EQ(rbind(socket.fd(), any.get(), any.length), 0) << std::strerror(errno);
  EXPECT_EQ(rlisten(socket.fd(), 16), 0) << std::strerror(errno);
  place.length = sizeof place.storage;
  EXPECT_EQ(rgetsockname(socket.fd(), reinterpret_cast<sockaddr*>(&place.storage), &place.length), 0);
  EXPECT_NE(place.port(), 0);
}

Socket connect_to(const Place& place, const std::vector<Option>& options) {
  Socket socket(rsocket(place.family(), SOCK_STREAM, 0));
  apply(socket.fd(), options);
  EXPECT_EQ(rconnect(socket.fd(), place.get(), place.length), 0) << std::strerror(errno);
  return socket;
}

Pair::Pair(const std::vector<Option>& options) {
  const Listener listener(options);
  std::thread connecting([&] { client = connect_to(listener.place, options); });
  server = Socket(raccept(listener.socket.fd(), nullptr, nullptr));
  EXPECT_GE(server.fd(), 0) << std::strerror(errno);
  connecting.join();
}

std::vector<std::byte> pattern_bytes(uint64_t from, size_t length, uint64_t seed) {
  std::vector<std::byte> bytes(length);
  for (size_t i = 0; i < length; ++i) {
    bytes[i] = pattern(from + i, seed);
  }
  return bytes;
}

size_t first_difference(const std::vector<std::byte>& bytes, size_t length, uint64_t from, uint64_t seed) {
  for (size_t i = 0; i < length; ++i) {
    if (bytes[i] != pattern(from + i, seed)) {
      return i;
    }
  }
  return length;
}

std::string send_pattern(int fd, uint64_t total, size_t piece, uint64_t seed) {
  for (uint64_t sent = 0; sent < total;) {
    const auto bytes = pattern_bytes(sent, static_cast<size_t>(std::min<uint64_t>(piece, total - sent)), seed);
    const ssize_t result = rsend(fd, bytes.data(), bytes.size(), 0);
    if (result <= 0) {
      return said("rsend", result) + " after " + std::to_string(sent) + " bytes";
    }
    sent += static_cast<uint64_t>(result);
  }
  return "";
}

std::string receive_pattern(int fd, uint64_t total, size_t piece, uint64_t seed) {
  std::vector<std::byte> bytes(piece);
  for (uint64_t received = 0; received < total;) {
    const auto wanted = static_cast<size_t>(std::min<uint64_t>(piece, total - received));
    const ssize_t result = rrecv(fd, bytes.data(), wanted, 0);
    if (result <= 0) {
      return said("rrecv", result) + " after " + std::to_string(received) + " bytes";
    }
    const auto got = static_cast<size_t>(result);
    const size_t wrong = first_difference(bytes, got, received, seed);
    if (wrong != got) {
      return "byte " + std::to_string(received + wrong) + " is wrong";
    }
    received += got;
  }
  return "";
}

}  // namespace ringbolt::rsocket_test
