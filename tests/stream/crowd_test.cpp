// Many streams at once, and many one after the other: nothing grows.

#include <sys/resource.h>

#include <fstream>

#include "processes.h"

namespace ringbolt::stream_test {
namespace {

size_t descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

// A sanitizer keeps freed memory for a while, to find who still uses it.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kIsFreedMemoryKept = true;
#else
constexpr bool kIsFreedMemoryKept = false;
#endif

/// Resident memory.
size_t kilobytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word == "VmRSS:") {
      size_t kb = 0;
      status >> kb;
      return kb;
    }
  }
  return 0;
}

void allow_descriptors(rlim_t wanted) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = std::min(limit.rlim_max, wanted);
  setrlimit(RLIMIT_NOFILE, &limit);
}

/// A word to and fro.
void greet(ByteStream& client, ByteStream& server, uint64_t number) {
  uint64_t seen = 0;
  write_all(client, reinterpret_cast<const char*>(&number), sizeof number);
  ASSERT_TRUE(read_all(server, reinterpret_cast<char*>(&seen), sizeof seen));
  ASSERT_EQ(seen, number);
  write_all(server, reinterpret_cast<const char*>(&number), sizeof number);
  ASSERT_TRUE(read_all(client, reinterpret_cast<char*>(&seen), sizeof seen));
  ASSERT_EQ(seen, number);
}

/// Both ends in this process: what one leaves behind shows.
struct Both {
  StreamService service{"soft"};
  ringbolt_stream_options options = with_buffers(4096);
  std::optional<StreamListener> listener;

  Both() {
    ringbolt_stream_listener_options listening = StreamService::listener_options();
    listening.stream = &options;
    listener.emplace(service.listen("127.0.0.1", 0, listening));
  }
  std::pair<ByteStream, ByteStream> connect() {
    ByteStream client = service.connect("127.0.0.1", listener->port(), 0, options);
    std::optional<ByteStream> server;
    for (uint64_t waited = 0; !server && waited < kSoonMs; ++waited) {
      client.wait(RINGBOLT_STREAM_CONNECTED, 0);  // its side of the handshake
      server = listener->accept(1);
    }
    if (!server || (client.wait(RINGBOLT_STREAM_CONNECTED, kSoonMs) & RINGBOLT_STREAM_CONNECTED) == 0) {
      throw std::runtime_error("not connected: " + client.words());
    }
    // Both ends are this thread's: the server announces its buffer when it has heard that it is connected.
    server->wait(RINGBOLT_STREAM_CONNECTED, kSoonMs);
    return {std::move(client), std::move(*server)};
  }
};

void open_and_close(Both& both, int cycles) {
  for (int i = 0; i < cycles; ++i) {
    auto [client, server] = both.connect();
    greet(client, server, static_cast<uint64_t>(i));
  }
}

void grows_by_nothing(int warm_up, int cycles) {
  const RuntimeFolder folder;
  Both both;
  open_and_close(both, warm_up);
  const size_t descriptors_before = descriptors();
  const size_t memory_before = kilobytes();
  open_and_close(both, cycles);
  EXPECT_LE(descriptors(), descriptors_before + 2);
  if (!kIsFreedMemoryKept) {
    EXPECT_LE(kilobytes(), memory_before + 8192);
  }
}

TEST(StreamCrowd, fifty_cycles_leave_nothing) { grows_by_nothing(20, 50); }
TEST(StreamCrowdHeavy, ten_thousand_cycles_leave_nothing) { grows_by_nothing(500, 10'000); }

void all_at_once(size_t n) {
  const RuntimeFolder folder;
  allow_descriptors(20'000);
  Both both;
  const size_t descriptors_before = descriptors();
  {
    std::vector<std::pair<ByteStream, ByteStream>> all;
    for (size_t i = 0; i < n; ++i) {
      all.push_back(both.connect());
    }
    EXPECT_EQ(both.listener->ended(RINGBOLT_STREAM_OPEN), n);
    for (int round = 0; round < 3; ++round) {
      for (size_t i = 0; i < n; ++i) {
        greet(all[i].first, all[i].second, i + 1000 * static_cast<size_t>(round));
      }
    }
  }
  EXPECT_EQ(both.listener->ended(RINGBOLT_STREAM_OPEN), 0U);
  EXPECT_LE(descriptors(), descriptors_before + 16);
}

TEST(StreamCrowd, thirty_at_once) { all_at_once(30); }
TEST(StreamCrowdHeavy, a_thousand_at_once) { all_at_once(1000); }

/// A whole process of clients is killed.
TEST(StreamCrowd, killed_clients_leave_nothing) {
  constexpr size_t kClients = 50;
  const RuntimeFolder folder;
  Child clients([&](int control) {
    const auto port = static_cast<uint16_t>(hear(control));
    StreamService service("soft");
    std::vector<ByteStream> all;
    for (size_t i = 0; i < kClients; ++i) {
      all.push_back(service.connect("127.0.0.1", port, kSoonMs, with_buffers(4096)));
      write_all(all.back(), "x", 1);
    }
    hear(control);
  });
  Both both;
  tell(clients.control(), both.listener->port());
  std::vector<ByteStream> all;
  char word = 0;
  while (all.size() < kClients) {
    auto stream = both.listener->accept(kSoonMs);
    ASSERT_TRUE(stream);
    ASSERT_TRUE(read_all(*stream, &word, 1));
    all.push_back(std::move(*stream));
  }
  clients.kill(SIGKILL);
  for (ByteStream& stream : all) {
    EXPECT_EQ(stream.read(&word, 1, kSoonMs), 0U);
  }
  all.clear();
  EXPECT_EQ(both.listener->ended(RINGBOLT_STREAM_OPEN), 0U);
  EXPECT_EQ(both.listener->ended(RINGBOLT_STREAM_PEER_CLOSED), kClients);
}

}  // namespace
}  // namespace ringbolt::stream_test
