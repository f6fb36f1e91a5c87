#include "wire/thunderbolt_hello.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include "wire/bytes.h"

namespace ringbolt::wire {
namespace {

struct At {
  static constexpr size_t route_high = 0, route_low = 4, length = 8, uuid = 12, type = 28, magic = 32, version = 36,
                          op = 38, bytes = 40, flags = 42, sequence = 44, capabilities = 48, rail = 52, route = 56,
                          transmit_hop = 64, receive_hop = 68, transmit_path = 72, transmit_ring = 76,
                          receive_ring = 80, path_flags = 84, end = 88;
};
static_assert(At::end == kThunderboltHelloBytes);

constexpr uint32_t kMagic = 0x31564254;  // "TBV1"
constexpr uint16_t kVersion = 1;
// 7c2c8f1e-5b4d-4a01-9f3a-2b8e6d4c1a07, in the order in which it is written.
constexpr std::array<uint8_t, 16> kUuid = {0x7c, 0x2c, 0x8f, 0x1e, 0x5b, 0x4d, 0x4a, 0x01,
                                           0x9f, 0x3a, 0x2b, 0x8e, 0x6d, 0x4c, 0x1a, 0x07};
// Of the length word: 32-bit words behind the first three, and the sequence of the XDomain protocol.
constexpr uint32_t kLengthMask = 0x3f;
constexpr uint32_t kLengthWords = (kThunderboltHelloBytes - At::uuid) / 4;
constexpr uint32_t kSequenceShift = 27;
constexpr uint32_t kSequenceMask = 3;
constexpr uint64_t kRouteMask = ~(uint64_t{1} << 63U);

}  // namespace

base::Result<ThunderboltHello> parse_thunderbolt_hello(std::span<const std::byte> message) {
  if (message.size() != kThunderboltHelloBytes) {
    return base::fail(EBADMSG);
  }
  const auto word = [&](size_t at) { return get_le<uint32_t>(message, at); };
  const auto op = get_le<uint16_t>(message, At::op);
  const uint32_t length = word(At::length);
  if ((length & kLengthMask) != kLengthWords || get_bytes<uint8_t, 16>(message, At::uuid) != kUuid ||
      word(At::magic) != kMagic || get_le<uint16_t>(message, At::bytes) != kThunderboltHelloBytes ||
      op < static_cast<uint16_t>(HelloOp::hello) || op > static_cast<uint16_t>(HelloOp::ready_ack) ||
      word(At::type) != op) {
    return base::fail(EBADMSG);
  }
  if (get_le<uint16_t>(message, At::version) != kVersion) {
    return base::fail(EPROTONOSUPPORT);
  }
  ThunderboltHello hello;
  hello.header_route = (uint64_t{word(At::route_high)} << 32U | word(At::route_low)) & kRouteMask;
  hello.xdomain_sequence = static_cast<uint8_t>(length >> kSequenceShift & kSequenceMask);
  hello.op = static_cast<HelloOp>(op);
  hello.flags = get_le<uint16_t>(message, At::flags);
  hello.sequence = word(At::sequence);
  hello.capabilities = word(At::capabilities);
  hello.rail = word(At::rail);
  hello.route = get_le<uint64_t>(message, At::route);
  hello.transmit_hop = word(At::transmit_hop);
  hello.receive_hop = word(At::receive_hop);
  hello.transmit_path = word(At::transmit_path);
  hello.transmit_ring = word(At::transmit_ring);
  hello.receive_ring = word(At::receive_ring);
  hello.path_flags = word(At::path_flags);
  return hello;
}

void emit(const ThunderboltHello& hello, std::span<std::byte, kThunderboltHelloBytes> out) {
  const uint64_t header_route = hello.header_route & kRouteMask;
  put_le(out, At::route_high, static_cast<uint32_t>(header_route >> 32U));
  put_le(out, At::route_low, static_cast<uint32_t>(header_route));
  put_le(out, At::length, kLengthWords | (hello.xdomain_sequence & kSequenceMask) << kSequenceShift);
  put_bytes(out, At::uuid, kUuid);
  put_le(out, At::type, static_cast<uint32_t>(hello.op));
  put_le(out, At::magic, kMagic);
  put_le(out, At::version, kVersion);
  put_le(out, At::op, static_cast<uint16_t>(hello.op));
  put_le(out, At::bytes, static_cast<uint16_t>(kThunderboltHelloBytes));
  put_le(out, At::flags, hello.flags);
  put_le(out, At::sequence, hello.sequence);
  put_le(out, At::capabilities, hello.capabilities);
  put_le(out, At::rail, hello.rail);
  put_le(out, At::route, hello.route);
  put_le(out, At::transmit_hop, hello.transmit_hop);
  put_le(out, At::receive_hop, hello.receive_hop);
  put_le(out, At::transmit_path, hello.transmit_path);
  put_le(out, At::transmit_ring, hello.transmit_ring);
  put_le(out, At::receive_ring, hello.receive_ring);
  put_le(out, At::path_flags, hello.path_flags);
}

}  // namespace ringbolt::wire
