// What the link over byte streams costs above bare ones: 4 KiB packets over one and two socket pairs, beside the same
// bytes through a bare pair, and an 8-byte round trip. One thread an end, a core each.
#include <benchmark/benchmark.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "link/stream_endpoint.h"
#include "micro/pinned_thread.h"

namespace ringbolt::bench {
namespace {

constexpr size_t kBareBytes = 64 * 1024;

struct SocketPair {
  SocketPair() { socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()); }
  ~SocketPair() {
    close(ends[0]);
    close(ends[1]);
  }
  SocketPair(const SocketPair&) = delete;
  SocketPair& operator=(const SocketPair&) = delete;
  std::array<int, 2> ends{};
};

std::unique_ptr<link::StreamEndpoint> endpoint(const std::vector<std::unique_ptr<SocketPair>>& pairs, size_t side) {
  std::vector<std::unique_ptr<link::StreamSource>> sources;
  for (const auto& pair : pairs) {
    sources.push_back(link::make_stream_source("fd:" + std::to_string(pair->ends[side])));
  }
  link::StreamLink::Options options;
  options.incarnation = options.seed = side + 1;
  return std::make_unique<link::StreamEndpoint>(std::move(sources), options, base::now_ns());
}

std::vector<std::unique_ptr<SocketPair>> pairs_of(int64_t count) {
  std::vector<std::unique_ptr<SocketPair>> pairs(static_cast<size_t>(count));
  for (auto& pair : pairs) {
    pair = std::make_unique<SocketPair>();
  }
  return pairs;
}

void stream_packets(benchmark::State& state) {
  const auto bytes = static_cast<size_t>(state.range(0));
  const auto pairs = pairs_of(state.range(1));
  const auto sender = endpoint(pairs, 0);
  const auto target = endpoint(pairs, 1);
  std::vector<std::byte> source(1 << 20, std::byte{0x5a});
  std::vector<std::byte> memory(1 << 20);
  alignas(64) std::atomic<uint64_t> received{0};
  uint64_t sent = 0;
  {
    const PinnedThread receiver([&] {
      target->receive(base::now_ns(), [&](std::span<const std::byte> packet) {
        const uint64_t count = received.load(std::memory_order_relaxed);
        std::memcpy(memory.data() + count * bytes % (memory.size() - 4096), packet.data(), packet.size());
        received.store(count + 1, std::memory_order_release);
      });
    });
    for (auto _ : state) {
      for (size_t i = 0; i < 16;) {
        const auto place = sender->reserve();
        if (place.empty()) {
          sender->receive(base::now_ns(), [](auto) {});
          continue;
        }
        std::memcpy(place.data(), source.data() + (sent + i) * bytes % (source.size() - 4096), bytes);
        sender->commit(bytes);
        ++i;
      }
      sent += 16;
      sender->receive(base::now_ns(), [](auto) {});
    }
    while (received != sent) {
      sender->receive(base::now_ns(), [](auto) {});
    }
  }
  state.SetBytesProcessed(static_cast<int64_t>(sent * bytes));
  state.counters["repeated"] = static_cast<double>(sender->link().counters().repeated_packets);
}

void bare_stream(benchmark::State& state) {
  const SocketPair pair;
  std::vector<std::byte> source(kBareBytes, std::byte{0x5a});
  std::vector<std::byte> memory(kBareBytes);
  const PinnedThread receiver([&] {
    const ssize_t count = recv(pair.ends[1], memory.data(), memory.size(), MSG_DONTWAIT);
    benchmark::DoNotOptimize(count);
  });
  int64_t sent = 0;
  for (auto _ : state) {
    const ssize_t count = send(pair.ends[0], source.data(), source.size(), MSG_DONTWAIT);
    sent += count > 0 ? count : 0;
  }
  state.SetBytesProcessed(sent);
}

void stream_round_trip(benchmark::State& state) {
  const auto pairs = pairs_of(1);
  const auto one = endpoint(pairs, 0);
  const auto other = endpoint(pairs, 1);
  const auto put = [](link::StreamEndpoint& end, uint64_t value) {
    std::memcpy(end.reserve().data(), &value, sizeof value);
    end.commit(sizeof value);
  };
  const PinnedThread echo([&] {
    uint64_t value = 0;
    const size_t count = other->receive(
        base::now_ns(), [&](std::span<const std::byte> packet) { std::memcpy(&value, packet.data(), sizeof value); });
    if (count != 0) {
      put(*other, value);
      other->flush(base::now_ns());
    }
  });
  uint64_t value = 0;
  for (auto _ : state) {
    uint64_t answer = 0;
    put(*one, ++value);
    one->flush(base::now_ns());
    while (answer != value) {
      one->receive(base::now_ns(),
                   [&](std::span<const std::byte> packet) { std::memcpy(&answer, packet.data(), sizeof answer); });
    }
  }
}

BENCHMARK(stream_packets)->ArgNames({"bytes", "rails"})->ArgsProduct({{64, 4096}, {1, 2}})->UseRealTime();
BENCHMARK(bare_stream)->UseRealTime();
BENCHMARK(stream_round_trip)->UseRealTime();

}  // namespace
}  // namespace ringbolt::bench
