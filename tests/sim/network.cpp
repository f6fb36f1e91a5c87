#include "network.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "wire/icrc.h"
#include "wire/opcode.h"
#include "wire/packet.h"

namespace ringbolt::sim {
namespace {

// IP, UDP, ICRC and Ethernet around the BTH, for the bottleneck's accounts.
constexpr uint64_t kFrameOverheadBytes = 40 + 8 + 38;

wire::Flow flow_from(uint32_t side) {
  wire::Flow flow;
  flow.source = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, static_cast<uint8_t>(1 + side)};
  flow.destination = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, static_cast<uint8_t>(2 - side)};
  return flow;
}

}  // namespace

std::vector<std::byte> Network::serialize(uint32_t from_side, const transport::OutPacket& packet,
                                          std::span<const std::byte> payload) const {
  const size_t headers = wire::header_bytes(packet.headers.bth.opcode);
  RINGBOLT_ASSERT(headers != 0 && payload.size() == packet.length);
  RINGBOLT_ASSERT(packet.headers.bth.pad_count == wire::pad_bytes(payload.size()));
  const size_t seal = wire::seal_bytes(packet.headers.bth);
  std::vector<std::byte> bytes(headers + payload.size() + packet.headers.bth.pad_count + seal + wire::kIcrcBytes);
  wire::emit(packet.headers, bytes);
  if (seal != 0) {
    wire::emit_seal(packet.headers, std::span(bytes).last(seal + wire::kIcrcBytes));
  }
  if (!payload.empty()) {
    std::memcpy(bytes.data() + headers, payload.data(), payload.size());
  }
  wire::put_icrc(flow_from(from_side), 0, bytes);
  return bytes;
}

void Network::note(uint64_t now_ns, const char* what, uint32_t from_side, std::span<const std::byte> bytes) const {
  if (!is_tracing_) {
    return;
  }
  const auto packet = wire::parse(bytes);
  if (!packet) {
    std::printf("%12.3f us  %u->%u %-10s unreadable, %zu bytes\n", static_cast<double>(now_ns) / 1e3, from_side,
                1 - from_side, what, bytes.size());
    return;
  }
  const wire::Headers& headers = packet->headers;
  std::printf("%12.3f us  %u->%u %-10s opcode %02x psn %06x%s payload %zu", static_cast<double>(now_ns) / 1e3,
              from_side, 1 - from_side, what, headers.bth.opcode, headers.bth.psn, headers.bth.wants_ack ? " asks" : "",
              packet->payload.size());
  if (wire::has_aeth(headers.bth.opcode)) {
    std::printf(" syndrome %02x msn %u", headers.aeth.syndrome, headers.aeth.msn);
  }
  if (wire::has_reth(headers.bth.opcode)) {
    std::printf(" length %u", headers.reth.length);
  }
  std::printf("\n");
}

void Network::send(uint64_t now_ns, uint32_t from_side, const transport::OutPacket& packet,
                   std::span<const std::byte> payload) {
  ++counters_.sent;
  std::vector<std::byte> bytes = serialize(from_side, packet, payload);
  if (now_ns >= weather_.cut_from_ns && now_ns < weather_.cut_until_ns) {
    ++counters_.lost;
    failure_times_ns_.push_back(now_ns);
    note(now_ns, "cut", from_side, bytes);
    return;
  }
  uint64_t leaves_ns = now_ns;
  if (weather_.bits_per_second != 0) {
    uint64_t& free_ns = line_free_ns_[from_side];
    const uint64_t begins_ns = free_ns > now_ns ? free_ns : now_ns;
    const uint64_t frame_bits = (bytes.size() + kFrameOverheadBytes) * 8;
    const uint64_t waiting_bytes = (begins_ns - now_ns) * weather_.bits_per_second / 8'000'000'000;
    if (waiting_bytes + bytes.size() > weather_.queue_bytes) {
      ++counters_.overflowed;
      failure_times_ns_.push_back(now_ns);
      note(now_ns, "overflow", from_side, bytes);
      return;
    }
    free_ns = begins_ns + frame_bits * 1'000'000'000 / weather_.bits_per_second;
    leaves_ns = free_ns;
  }
  if (random_.happens(weather_.loss)) {
    ++counters_.lost;
    failure_times_ns_.push_back(now_ns);
    note(now_ns, "lost", from_side, bytes);
    return;
  }
  note(now_ns, "sent", from_side, bytes);
  if (random_.happens(weather_.duplication)) {
    launch(leaves_ns + weather_.delay_ns + random_.below(weather_.reorder_delay_ns + 1), from_side, bytes);
  }
  const uint64_t late_ns = random_.happens(weather_.reordering) ? random_.below(weather_.reorder_delay_ns + 1) : 0;
  launch(leaves_ns + weather_.delay_ns + late_ns, from_side, std::move(bytes));
}

void Network::launch(uint64_t at_ns, uint32_t from_side, std::vector<std::byte> bytes) {
  const bool is_damaged = random_.happens(weather_.corruption);
  if (is_damaged) {
    ++counters_.corrupted;
    failure_times_ns_.push_back(at_ns);
    bytes[random_.below(bytes.size())] ^= static_cast<std::byte>(1U << random_.below(8));
  }
  flying_.push({at_ns, numbers_++, 1 - from_side, is_damaged, std::move(bytes)});
}

uint64_t Network::failures_since(uint64_t from_ns) const {
  return static_cast<uint64_t>(
      std::count_if(failure_times_ns_.begin(), failure_times_ns_.end(), [&](uint64_t at) { return at >= from_ns; }));
}

std::optional<Network::Arrived> Network::receive(uint64_t now_ns) {
  while (!flying_.empty() && flying_.top().at_ns <= now_ns) {
    Flying& top = const_cast<Flying&>(flying_.top());  // about to be popped: its bytes may be moved out
    const bool is_damaged = top.is_damaged;
    Arrived arrived{top.to_side, std::move(top.bytes)};
    flying_.pop();
    if (!wire::check_icrc(flow_from(1 - arrived.to_side), arrived.bytes)) {
      RINGBOLT_ASSERT(is_damaged);
      (void)wire::parse(arrived.bytes);  // must survive whatever it is
      note(now_ns, "bad ICRC", 1 - arrived.to_side, arrived.bytes);
      continue;
    }
    // The ICRC leaves out a few bits (resv8a of the BTH): damage there is none.
    note(now_ns, "arrived", 1 - arrived.to_side, arrived.bytes);
    ++counters_.delivered;
    return arrived;
  }
  return std::nullopt;
}

}  // namespace ringbolt::sim
