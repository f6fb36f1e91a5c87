// What the checksum of a packet costs: computing it, checking it, and finding the identification that an IPv4 socket
// hides.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "wire/icrc.h"
#include "wire/packet.h"

namespace ringbolt::bench {
namespace {

const wire::Flow kFlow4{wire::ipv4_address(10, 77, 0, 1), wire::ipv4_address(10, 77, 0, 2)};
const wire::Flow kFlow6{{0xfe, 0x80}, {0xfe, 0x80, 1}};

std::vector<std::byte> packet_of(const wire::Flow& flow, uint16_t id, size_t payload_bytes) {
  std::vector<std::byte> packet(wire::kBthBytes + payload_bytes + wire::kIcrcBytes);
  for (size_t i = 0; i < packet.size(); ++i) {
    packet[i] = static_cast<std::byte>(i * 7);
  }
  wire::put_icrc(flow, id, packet);
  return packet;
}

void put_icrc(benchmark::State& state) {
  std::vector<std::byte> packet = packet_of(kFlow6, 0, static_cast<size_t>(state.range(0)));
  for (auto _ : state) {
    wire::put_icrc(kFlow6, 0, packet);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(put_icrc)->Arg(8)->Arg(1024)->Arg(4096);

/// Argument 1: the identification that the sender used, or -1 for IPv6.
void check_icrc(benchmark::State& state) {
  const wire::Flow& flow = state.range(1) < 0 ? kFlow6 : kFlow4;
  const auto id = static_cast<uint16_t>(state.range(1));
  const std::vector<std::byte> packet = packet_of(flow, id, static_cast<size_t>(state.range(0)));
  for (auto _ : state) {
    benchmark::DoNotOptimize(wire::check_icrc(flow, packet));
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(check_icrc)->ArgsProduct({{8, 1024, 4096}, {-1, 0, 5, 0x718c}});

}  // namespace
}  // namespace ringbolt::bench
