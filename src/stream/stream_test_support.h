#pragma once

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "stream/listener.h"
#include "stream/stream.h"
#include "verbs/soft_device_test_support.h"

/// Streams within one process, over our own device in a runtime folder of the test's own.
namespace ringbolt::stream::test {

inline constexpr uint64_t kLimitMs = 30'000;  // with a sanitizer, too
inline uint64_t limit_ms() { return kLimitMs; }
inline Deadline soon() { return Deadline::in_ms(limit_ms()); }

/// Byte number `at` of a direction: depends on its place.
inline std::byte pattern(uint64_t at, int side = 0) {
  return static_cast<std::byte>((at * 167 + (at >> 8U) * 13 + (at >> 16U) * 7 + static_cast<uint64_t>(side) * 91) &
                                0xffU);
}

inline std::vector<std::byte> patterned(size_t count, uint64_t from = 0, int side = 0) {
  std::vector<std::byte> bytes(count);
  for (size_t i = 0; i < count; ++i) {
    bytes[i] = pattern(from + i, side);
  }
  return bytes;
}

inline base::Result<size_t> write(Stream& stream, std::span<const std::byte> bytes, const Deadline& deadline = soon()) {
  const iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
  return stream.write({&piece, 1}, deadline);
}

/// All of so many bytes; fewer if the stream ended or time did.
inline std::vector<std::byte> read_all(Stream& stream, size_t count) {
  std::vector<std::byte> bytes(count);
  size_t done = 0;
  while (done < count) {
    const auto some = stream.read(std::span(bytes).subspan(done), soon());
    if (!some || *some == 0) {
      break;
    }
    done += *some;
  }
  bytes.resize(done);
  return bytes;
}

/// A service and a listener at a free port of 127.0.0.1.
class World {
 public:
  explicit World(ListenerSettings settings = {}, ServiceSettings shared = {}) {
    static verbs::test::RuntimeFolder folder;  // of the process: a connection manager stays where it began
    shared.verbs = "soft";
    service = std::make_shared<Service>(shared);
    listener = std::make_unique<Listener>(service, "127.0.0.1", 0, settings);
  }
  std::unique_ptr<Stream> begin(const StreamSettings& settings = {}) const {
    return Stream::connect(service, addresses_of("127.0.0.1", listener->port(), Deadline::now()), "the server",
                           settings);
  }

  std::shared_ptr<Service> service;
  std::unique_ptr<Listener> listener;
};

/// Both ends of a stream, connected.
struct Pair {
  explicit Pair(const World& world, const StreamSettings& of_client = {}) : client(world.begin(of_client)) {
    std::thread connecting([&] { EXPECT_EQ(client->await_connected(soon()), 0) << client->words(); });
    auto accepted = world.listener->accept(soon());
    if (accepted) {
      server = std::move(*accepted);
      EXPECT_EQ(server->await_connected(soon()), 0) << server->words();
    } else {
      ADD_FAILURE() << "nothing to accept: errno " << accepted.error().value;
    }
    connecting.join();
  }
  std::unique_ptr<Stream> client;
  std::unique_ptr<Stream> server;
};

}  // namespace ringbolt::stream::test
