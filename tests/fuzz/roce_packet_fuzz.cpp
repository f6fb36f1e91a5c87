// Any bytes as an IP datagram to port 4791: the ICRC check and the parser take them, what parses is written back and
// read again the same, and a packet with the ICRC that we compute is accepted.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/assert.h"
#include "wire/bytes.h"
#include "wire/greeting.h"
#include "wire/icrc.h"
#include "wire/opcode.h"
#include "wire/packet.h"
#include "wire/selective_ack.h"

namespace {

using namespace ringbolt;
using In = std::span<const std::byte>;

struct Datagram {
  wire::Flow flow;
  uint16_t ipv4_id = 0;
  In packet;
};

std::optional<Datagram> split(In in) {
  if (in.size() >= 28 && (std::to_integer<unsigned>(in[0]) >> 4) == 4) {
    const auto address = [&](size_t at) {
      const auto bytes = wire::get_bytes<uint8_t, 4>(in, at);
      return wire::ipv4_address(bytes[0], bytes[1], bytes[2], bytes[3]);
    };
    return Datagram{{address(12), address(16), wire::get_be<uint16_t>(in, 20), wire::get_be<uint16_t>(in, 22)},
                    wire::get_be<uint16_t>(in, 4),
                    in.subspan(28)};
  }
  if (in.size() >= 48 && (std::to_integer<unsigned>(in[0]) >> 4) == 6) {
    return Datagram{{wire::get_bytes<uint8_t, 16>(in, 8), wire::get_bytes<uint8_t, 16>(in, 24),
                     wire::get_be<uint16_t>(in, 40), wire::get_be<uint16_t>(in, 42)},
                    0,
                    in.subspan(48)};
  }
  return std::nullopt;
}

void check_own(const wire::PacketView& view) {
  if (view.headers.bth.opcode == wire::kGreeting) {
    if (const auto greeting = wire::parse_greeting(view.payload)) {
      std::vector<std::byte> bytes(wire::kGreetingBytes);
      wire::emit(*greeting, std::span<std::byte, wire::kGreetingBytes>(bytes));
      RINGBOLT_ASSERT(wire::parse_greeting(bytes).value() == *greeting);
    }
  }
  if (view.headers.bth.opcode == wire::kSelectiveAck) {
    if (const auto ack = wire::parse_selective_ack(view.payload)) {
      std::vector<std::byte> bytes(wire::kSelectiveAckBytes);
      wire::emit(*ack, std::span<std::byte, wire::kSelectiveAckBytes>(bytes));
      RINGBOLT_ASSERT(std::equal(bytes.begin(), bytes.end(), view.payload.begin(), view.payload.end()));
    }
  }
}

void check_icrc(const Datagram& datagram) {
  const bool is_good = wire::check_icrc(datagram.flow, datagram.packet);
  const auto id = wire::find_ipv4_id(datagram.flow, datagram.packet);
  RINGBOLT_ASSERT(!id || is_good);
  std::vector<std::byte> packet(datagram.packet.begin(), datagram.packet.end());
  if (id) {
    wire::put_icrc(datagram.flow, *id, packet);
    RINGBOLT_ASSERT(std::equal(packet.begin(), packet.end(), datagram.packet.begin()));
  }
  if (packet.size() < 16 || packet.size() % 4 != 0 || packet.size() > 65507) {
    RINGBOLT_ASSERT(!is_good);
    return;
  }
  wire::put_icrc(datagram.flow, datagram.ipv4_id, packet);
  RINGBOLT_ASSERT(wire::check_icrc(datagram.flow, packet));
  RINGBOLT_ASSERT(!wire::is_ipv4(datagram.flow) || wire::find_ipv4_id(datagram.flow, packet) == datagram.ipv4_id);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto datagram = split(std::as_bytes(std::span(data, size)));
  if (!datagram) {
    return 0;
  }
  check_icrc(*datagram);
  const auto view = wire::parse(datagram->packet);
  if (!view) {
    return 0;
  }
  check_own(*view);
  std::vector<std::byte> written(wire::kMaxHeaderBytes);
  written.resize(wire::emit(view->headers, written));
  RINGBOLT_ASSERT(written.size() == wire::header_bytes(view->headers.bth.opcode));
  written.insert(written.end(), view->payload.begin(), view->payload.end());
  written.resize(written.size() + view->headers.bth.pad_count);
  const size_t seal = wire::seal_bytes(view->headers.bth);
  written.resize(written.size() + seal + wire::kIcrcBytes);
  if (seal != 0) {
    wire::emit_seal(view->headers, std::span(written).last(seal + wire::kIcrcBytes));
  }
  RINGBOLT_ASSERT(written.size() == datagram->packet.size());
  const auto again = wire::parse(written);
  RINGBOLT_ASSERT(again && again->headers == view->headers && again->payload.size() == view->payload.size());
  return 0;
}
