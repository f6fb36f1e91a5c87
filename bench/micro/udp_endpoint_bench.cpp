// What the UDP link costs above plain sockets: 4 KiB packets through two endpoints, ICRC and copies included, and an
// 8-byte ping-pong, each beside the same with bare sockets. Loopback, in a network namespace of its own.
#include <benchmark/benchmark.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "link/udp_batch.h"
#include "link/udp_endpoint.h"
#include "micro/own_network.h"
#include "micro/pinned_thread.h"
#include "wire/icrc.h"

namespace ringbolt::bench {
namespace {

constexpr size_t kHeaderBytes = 12;
constexpr size_t kWindowBytes = 256 * 1024;  // without a window the receiver loses a third
constexpr uint64_t kGiveUpSpins = 2'000'000'000;

constexpr wire::Address kIpv6Loopback{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
const wire::Address kIpv4Loopback = wire::ipv4_address(127, 0, 0, 1);

link::UdpPath path_of(bool is_ipv4) {
  const wire::Address address = is_ipv4 ? kIpv4Loopback : kIpv6Loopback;
  return {address, address, 0, 0};
}

class TwoEndpoints {
 public:
  TwoEndpoints() {
    std::string pattern = "/tmp/rb-bench-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    for (uint32_t slot = 0; slot < 2; ++slot) {
      endpoints_[slot] = link::UdpEndpoint::open({folder_, slot + 1});
    }
  }
  ~TwoEndpoints() {
    endpoints_ = {};
    std::filesystem::remove_all(folder_);
  }
  link::UdpEndpoint& operator[](size_t index) { return *endpoints_[index]; }

 private:
  std::string folder_;
  std::array<std::unique_ptr<link::UdpEndpoint>, 2> endpoints_;
};

/// A BTH to endpoint `index`, and the payload behind it.
bool put(link::UdpBatch& batch, const link::UdpPath& path, uint32_t index, const std::byte* payload, size_t bytes) {
  const auto place = batch.reserve(kHeaderBytes + bytes);
  if (place.empty()) {
    return false;
  }
  std::memset(place.data(), 0, kHeaderBytes);
  const uint32_t qpn = (index + 1) << 14U | 7U;
  for (size_t i = 0; i < 3; ++i) {
    place[5 + i] = static_cast<std::byte>(qpn >> (16 - 8 * i));
  }
  std::memcpy(place.data() + kHeaderBytes, payload, bytes);
  batch.commit(path, kHeaderBytes + bytes);
  return true;
}

void udp_endpoint_stream(benchmark::State& state) {
  const OwnNetwork network;
  if (!network.is_entered()) {
    state.SkipWithError("skip: a network namespace needs root");
    return;
  }
  TwoEndpoints endpoints;
  const auto payload_bytes = static_cast<size_t>(state.range(0));
  const link::UdpPath path = path_of(state.range(1) == 4);
  const size_t packets_per_call = 62'000 / (payload_bytes + 16);
  std::vector<std::byte> source(1 << 20, std::byte{0x5a});
  std::vector<std::byte> target(1 << 20);
  alignas(64) std::atomic<uint64_t> received{0};
  std::atomic<uint64_t> damaged{0};
  uint64_t sent = 0;
  {
    const PinnedThread receiver([&] {
      const auto count = endpoints[1].receive(
          [&](const link::UdpEndpoint::Arrived& arrived) {
            if (!wire::check_icrc(arrived.flow, arrived.packet)) {
              ++damaged;
            }
            const uint64_t at = received.load(std::memory_order_relaxed) * payload_bytes % (target.size() - 4096);
            std::memcpy(target.data() + at, arrived.packet.data() + kHeaderBytes, payload_bytes);
            received.store(received.load(std::memory_order_relaxed) + 1, std::memory_order_release);
          },
          16);
      benchmark::DoNotOptimize(count);
    });
    link::UdpBatch batch(endpoints[0]);
    for (auto _ : state) {
      for (uint64_t spins = 0;
           sent + packets_per_call > received + kWindowBytes / (payload_bytes + 16) && spins < kGiveUpSpins; ++spins) {
      }
      for (size_t i = 0; i < packets_per_call; ++i) {
        put(batch, path, 1, source.data() + (sent + i) * payload_bytes % (source.size() - 4096), payload_bytes);
      }
      sent += batch.flush().sent;
    }
    for (uint64_t spins = 0; sent != received && spins < kGiveUpSpins; ++spins) {
    }
  }
  state.SetBytesProcessed(static_cast<int64_t>(received * payload_bytes));
  state.counters["lost"] = static_cast<double>(sent - received);
  if (damaged != 0) {
    state.SkipWithError("damaged packets");
  }
}

void udp_endpoint_round_trip(benchmark::State& state) {
  const OwnNetwork network;
  if (!network.is_entered()) {
    state.SkipWithError("skip: a network namespace needs root");
    return;
  }
  TwoEndpoints endpoints;
  const link::UdpPath path = path_of(state.range(0) == 4);
  uint64_t payload = 0;
  uint64_t lost = 0;
  link::UdpBatch answers(endpoints[1]);
  const PinnedThread echo([&] {
    endpoints[1].receive(
        [&](const link::UdpEndpoint::Arrived& arrived) {
          if (wire::check_icrc(arrived.flow, arrived.packet)) {
            put(answers, path, 0, arrived.packet.data() + kHeaderBytes, sizeof payload);
            answers.flush();
          }
        },
        1);
  });
  link::UdpBatch batch(endpoints[0]);
  for (auto _ : state) {
    ++payload;
    uint64_t answer = 0;
    put(batch, path, 0 + 1, reinterpret_cast<const std::byte*>(&payload), sizeof payload);
    batch.flush();
    for (uint64_t spins = 0; answer != payload && spins < kGiveUpSpins / 1000; ++spins) {
      endpoints[0].receive(
          [&](const link::UdpEndpoint::Arrived& arrived) {
            if (wire::check_icrc(arrived.flow, arrived.packet)) {
              std::memcpy(&answer, arrived.packet.data() + kHeaderBytes, sizeof answer);
            }
          },
          1);
    }
    lost += answer != payload ? 1 : 0;
  }
  state.counters["lost"] = static_cast<double>(lost);
}

/// A bare socket on loopback and the address of another.
class BareSocket {
 public:
  BareSocket() : fd_(socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    address_.sin6_family = AF_INET6;
    address_.sin6_addr = in6addr_loopback;
    bind(fd_, reinterpret_cast<const sockaddr*>(&address_), sizeof address_);
    socklen_t length = sizeof address_;
    getsockname(fd_, reinterpret_cast<sockaddr*>(&address_), &length);
    set(SOL_SOCKET, SO_RCVBUFFORCE, 8 << 20);
    set(SOL_SOCKET, SO_SNDBUFFORCE, 8 << 20);
  }
  ~BareSocket() { close(fd_); }
  BareSocket(const BareSocket&) = delete;
  BareSocket& operator=(const BareSocket&) = delete;
  void set(int level, int option, int value) const { setsockopt(fd_, level, option, &value, sizeof value); }
  ssize_t send(const void* bytes, size_t length, const BareSocket& to) const {
    return sendto(fd_, bytes, length, 0, reinterpret_cast<const sockaddr*>(&to.address_), sizeof to.address_);
  }
  ssize_t receive(void* bytes, size_t length) const { return recv(fd_, bytes, length, 0); }

 private:
  int fd_;
  sockaddr_in6 address_{};
};

void bare_socket_stream(benchmark::State& state) {
  const auto packet_bytes = static_cast<size_t>(state.range(0)) + 16;
  const size_t call_bytes = 62'000 / packet_bytes * packet_bytes;
  const BareSocket sender;
  const BareSocket target;
  sender.set(IPPROTO_UDP, UDP_SEGMENT, static_cast<int>(packet_bytes));
  target.set(IPPROTO_UDP, UDP_GRO, 1);
  std::vector<std::byte> source(64 << 10, std::byte{0x5a});
  std::vector<std::byte> place(64 << 10);
  alignas(64) std::atomic<uint64_t> received{0};
  uint64_t sent = 0;
  {
    const PinnedThread receiver([&] {
      if (const ssize_t length = target.receive(place.data(), place.size()); length > 0) {
        received.store(received.load(std::memory_order_relaxed) + static_cast<uint64_t>(length));
      }
    });
    for (auto _ : state) {
      for (uint64_t spins = 0; sent + call_bytes > received + kWindowBytes && spins < kGiveUpSpins; ++spins) {
      }
      if (const ssize_t length = sender.send(source.data(), call_bytes, target); length > 0) {
        sent += static_cast<uint64_t>(length);
      }
    }
    for (uint64_t spins = 0; sent != received && spins < kGiveUpSpins; ++spins) {
    }
  }
  state.SetBytesProcessed(static_cast<int64_t>(received));
}

void bare_socket_round_trip(benchmark::State& state) {
  const BareSocket here;
  const BareSocket there;
  const PinnedThread echo([&] {
    uint64_t payload = 0;
    if (there.receive(&payload, sizeof payload) > 0) {
      there.send(&payload, sizeof payload, here);
    }
  });
  uint64_t payload = 0;
  for (auto _ : state) {
    ++payload;
    uint64_t answer = 0;
    here.send(&payload, sizeof payload, there);
    for (uint64_t spins = 0; answer != payload && spins < kGiveUpSpins / 1000; ++spins) {
      here.receive(&answer, sizeof answer);
    }
  }
}

BENCHMARK(udp_endpoint_stream)
    ->ArgNames({"payload", "ipv"})
    ->Args({4096, 6})
    ->Args({4096, 4})
    ->Args({1024, 6})
    ->UseRealTime();
BENCHMARK(bare_socket_stream)->ArgNames({"payload"})->Arg(4096)->Arg(1024)->UseRealTime();
BENCHMARK(udp_endpoint_round_trip)->ArgNames({"ipv"})->Arg(6)->Arg(4)->UseRealTime();
BENCHMARK(bare_socket_round_trip)->UseRealTime();

}  // namespace
}  // namespace ringbolt::bench
