#include "wire/icrc.h"

#include <array>
#include <cstring>

#include "base/assert.h"
#include "base/crc.h"
#include "wire/bytes.h"
#include "wire/headers.h"
#include "wire/ipv4_id.h"
#include "wire/packet.h"

// Hot path: no allocation, lock, system call or exception.
namespace ringbolt::wire {
namespace {

constexpr size_t kLinkBytes = 8;  // of ones, in place of the link header that RoCE has not
constexpr size_t kUdpBytes = 8;
constexpr size_t kMaxDatagramBytes = 0xffff - 20 - kUdpBytes;  // what the length field of an IPv4 header leaves
constexpr uint8_t kProtocolUdp = 17;

struct Ipv4At {
  static constexpr size_t version = 0, length = 2, id = 4, fragment = 6, ttl = 8, protocol = 9, checksum = 10,
                          source = 12, destination = 16, end = 20;
};
struct Ipv6At {
  static constexpr size_t version = 0, length = 4, next_header = 6, hop_limit = 7, source = 8, destination = 24,
                          end = 40;
};
struct UdpAt {
  static constexpr size_t source = 0, destination = 2, length = 4, checksum = 6, end = 8;
};
constexpr size_t kBthCongestion = 4;  // FECN, BECN and six reserved bits: routers may change them

/// What precedes the packet's bytes after the BTH in the CRC: fields that change on the way are ones.
using Prefix = std::array<std::byte, kLinkBytes + Ipv6At::end + UdpAt::end + kBthBytes>;

void put_last_four(std::span<std::byte> out, size_t at, const Address& address) {
  std::memcpy(out.data() + at, address.data() + 12, 4);
}

size_t put_ipv4(const Flow& flow, uint16_t id, size_t udp_length, std::span<std::byte> out) {
  put_be<uint16_t>(out, Ipv4At::version, 0x45ff);  // 20 bytes; type of service is masked
  put_be<uint16_t>(out, Ipv4At::length, static_cast<uint16_t>(Ipv4At::end + udp_length));
  put_be<uint16_t>(out, Ipv4At::id, id);
  put_be<uint16_t>(out, Ipv4At::fragment, 0x4000);  // do not fragment
  put_be<uint8_t>(out, Ipv4At::ttl, 0xff);
  put_be<uint8_t>(out, Ipv4At::protocol, kProtocolUdp);
  put_be<uint16_t>(out, Ipv4At::checksum, 0xffff);
  put_last_four(out, Ipv4At::source, flow.source);
  put_last_four(out, Ipv4At::destination, flow.destination);
  return Ipv4At::end;
}

size_t put_ipv6(const Flow& flow, size_t udp_length, std::span<std::byte> out) {
  put_be<uint32_t>(out, Ipv6At::version, 0x6fffffff);  // traffic class and flow label are masked
  put_be<uint16_t>(out, Ipv6At::length, static_cast<uint16_t>(udp_length));
  put_be<uint8_t>(out, Ipv6At::next_header, kProtocolUdp);
  put_be<uint8_t>(out, Ipv6At::hop_limit, 0xff);
  put_bytes(out, Ipv6At::source, flow.source);
  put_bytes(out, Ipv6At::destination, flow.destination);
  return Ipv6At::end;
}

size_t put_prefix(const Flow& flow, uint16_t id, std::span<const std::byte> packet, Prefix& prefix) {
  const std::span<std::byte> out(prefix);
  const size_t udp_length = kUdpBytes + packet.size() + kIcrcBytes;
  size_t at = kLinkBytes;
  std::memset(prefix.data(), 0xff, kLinkBytes);
  at += is_ipv4(flow) ? put_ipv4(flow, id, udp_length, out.subspan(at)) : put_ipv6(flow, udp_length, out.subspan(at));
  put_be(out, at + UdpAt::source, flow.source_port);
  put_be(out, at + UdpAt::destination, flow.destination_port);
  put_be<uint16_t>(out, at + UdpAt::length, static_cast<uint16_t>(udp_length));
  put_be<uint16_t>(out, at + UdpAt::checksum, 0xffff);
  at += UdpAt::end;
  std::memcpy(out.data() + at, packet.data(), kBthBytes);
  out[at + kBthCongestion] = std::byte{0xff};
  return at + kBthBytes;
}

bool is_possible_packet(std::span<const std::byte> packet) {
  return packet.size() >= kBthBytes + kIcrcBytes && packet.size() <= kMaxDatagramBytes && packet.size() % 4 == 0;
}

uint32_t carried_icrc(std::span<const std::byte> packet) {
  return __builtin_bswap32(get_be<uint32_t>(packet, packet.size() - kIcrcBytes));
}

}  // namespace

uint32_t icrc(const Flow& flow, uint16_t ipv4_id, std::span<const std::byte> packet) {
  RINGBOLT_ASSERT(packet.size() >= kBthBytes && packet.size() <= kMaxDatagramBytes - kIcrcBytes);
  Prefix prefix;
  const size_t length = put_prefix(flow, ipv4_id, packet, prefix);
  return base::crc32(base::crc32(0, std::span(prefix).first(length)), packet.subspan(kBthBytes));
}

void put_icrc(const Flow& flow, uint16_t ipv4_id, std::span<std::byte> packet) {
  RINGBOLT_ASSERT(packet.size() >= kBthBytes + kIcrcBytes);
  const size_t covered = packet.size() - kIcrcBytes;
  put_be(packet, covered, __builtin_bswap32(icrc(flow, ipv4_id, packet.first(covered))));
}

bool check_icrc(const Flow& flow, std::span<const std::byte> packet) {
  if (is_ipv4(flow)) {
    return find_ipv4_id(flow, packet).has_value();
  }
  return is_possible_packet(packet) && carried_icrc(packet) == icrc(flow, 0, packet.first(packet.size() - kIcrcBytes));
}

std::optional<uint16_t> find_ipv4_id(const Flow& flow, std::span<const std::byte> packet) {
  if (!is_possible_packet(packet) || !is_ipv4(flow)) {
    return std::nullopt;
  }
  // Senders that set the socket up for it have identification 0, and cost no more than this.
  const uint32_t difference = carried_icrc(packet) ^ icrc(flow, 0, packet.first(packet.size() - kIcrcBytes));
  return difference == 0 ? 0 : solve_ipv4_id(difference, packet.size());
}

}  // namespace ringbolt::wire
