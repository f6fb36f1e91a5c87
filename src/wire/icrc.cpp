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

constexpr size_t kUdpBytes = 8;
constexpr size_t kMaxDatagramBytes = 0xffff - 20 - kUdpBytes;  // what the length field of an IPv4 header leaves

struct Ipv4At {
  static constexpr size_t version_to_fragment = 0, ttl_to_checksum = 8, source = 12, destination = 16, end = 20;
};
struct Ipv6At {
  static constexpr size_t version = 0, length_to_hop_limit = 4, source = 8, destination = 24, end = 40;
};
constexpr size_t kBthCongestion = 4;  // FECN, BECN and six reserved bits: routers may change them

// RoCE has no link header: eight bytes of ones stand in its place. What precedes the bytes after the BTH is written for
// base::crc32_of_blocks(), which wants the first four of them inverted: they are the last of the zeros before it all.
constexpr size_t kLinkBytes = 4;
constexpr size_t kIpv4PrefixBytes = kLinkBytes + Ipv4At::end + kUdpBytes + kBthBytes;
constexpr size_t kIpv6PrefixBytes = kLinkBytes + Ipv6At::end + kUdpBytes + kBthBytes;
constexpr size_t kBlockBytes = 16;
/// So many bytes after the BTH are copied behind the prefix, sooner than a piece of their own is begun for them.
constexpr size_t kMostCopiedBytes = 64;
using Blocks = std::array<std::byte, kIpv6PrefixBytes + kMostCopiedBytes>;
static_assert(kIpv6PrefixBytes % kBlockBytes == 0 && kIpv4PrefixBytes < kIpv6PrefixBytes);

void put_last_four(std::span<std::byte> out, size_t at, const Address& address) {
  std::memcpy(out.data() + at, address.data() + 12, 4);
}

// Fields that change on the way are ones, and fields are written several at a time: this is done for every packet.

size_t put_ipv4(const Flow& flow, uint16_t id, size_t udp_length, std::span<std::byte> out) {
  const uint64_t length = Ipv4At::end + udp_length;
  // 20 bytes of header, type of service masked; length; identification; do not fragment
  put_be<uint64_t>(out, Ipv4At::version_to_fragment, 0x45ff000000004000 | length << 32 | uint64_t{id} << 16);
  put_be<uint32_t>(out, Ipv4At::ttl_to_checksum, 0xff11ffff);  // UDP
  put_last_four(out, Ipv4At::source, flow.source);
  put_last_four(out, Ipv4At::destination, flow.destination);
  return Ipv4At::end;
}

size_t put_ipv6(const Flow& flow, size_t udp_length, std::span<std::byte> out) {
  put_be<uint32_t>(out, Ipv6At::version, 0x6fffffff);  // traffic class and flow label are masked
  put_be<uint32_t>(out, Ipv6At::length_to_hop_limit, static_cast<uint32_t>(udp_length << 16) | 0x11ff);  // UDP
  put_bytes(out, Ipv6At::source, flow.source);
  put_bytes(out, Ipv6At::destination, flow.destination);
  return Ipv6At::end;
}

/// From the link header to the BTH of `packet`, which lacks its ICRC.
void put_prefix(const Flow& flow, bool is_v4, uint16_t id, std::span<const std::byte> packet, std::span<std::byte> out) {
  const size_t udp_length = kUdpBytes + packet.size() + kIcrcBytes;
  size_t at = kLinkBytes;
  std::memset(out.data(), 0xff, kLinkBytes);
  at += is_v4 ? put_ipv4(flow, id, udp_length, out.subspan(at)) : put_ipv6(flow, udp_length, out.subspan(at));
  const uint64_t ports = uint64_t{flow.source_port} << 48 | uint64_t{flow.destination_port} << 32;
  put_be<uint64_t>(out, at, ports | udp_length << 16 | 0xffff);
  at += kUdpBytes;
  std::memcpy(out.data() + at, packet.data(), kBthBytes);
  out[at + kBthCongestion] = std::byte{0xff};
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
  const bool is_v4 = is_ipv4(flow);
  const size_t prefix = is_v4 ? kIpv4PrefixBytes : kIpv6PrefixBytes;
  const std::span<const std::byte> rest = packet.subspan(kBthBytes);
  const bool is_short = rest.size() <= kMostCopiedBytes;
  const size_t message = prefix + (is_short ? rest.size() : 0);
  const size_t zeros = (0 - message) % kBlockBytes;
  Blocks blocks;
  std::memset(blocks.data(), 0, kBlockBytes);
  put_prefix(flow, is_v4, ipv4_id, packet, std::span(blocks).subspan(zeros));
  if (is_short) {
    std::memcpy(blocks.data() + zeros + prefix, rest.data(), rest.size());
  }
  const uint32_t crc = base::crc32_of_blocks(std::span(blocks).first(zeros + message));
  return is_short ? crc : base::crc32(crc, rest);
}

void put_icrc(const Flow& flow, uint16_t ipv4_id, std::span<std::byte> packet) {
  RINGBOLT_ASSERT(packet.size() >= kBthBytes + kIcrcBytes);
  const size_t covered = packet.size() - kIcrcBytes;
  put_be(packet, covered, __builtin_bswap32(icrc(flow, ipv4_id, packet.first(covered))));
}

bool check_icrc(const Flow& flow, std::span<const std::byte> packet, uint16_t likely_id) {
  if (is_ipv4(flow)) {
    return find_ipv4_id(flow, packet, likely_id).has_value();
  }
  return is_possible_packet(packet) && carried_icrc(packet) == icrc(flow, 0, packet.first(packet.size() - kIcrcBytes));
}

std::optional<uint16_t> find_ipv4_id(const Flow& flow, std::span<const std::byte> packet, uint16_t likely_id) {
  if (!is_possible_packet(packet) || !is_ipv4(flow)) {
    return std::nullopt;
  }
  const uint32_t difference = carried_icrc(packet) ^ icrc(flow, likely_id, packet.first(packet.size() - kIcrcBytes));
  if (difference == 0) {
    return likely_id;
  }
  // It tells in which bits the identification that explains it is another one.
  const std::optional<uint16_t> bits = solve_ipv4_id(difference, packet.size());
  return bits ? std::optional(static_cast<uint16_t>(*bits ^ likely_id)) : std::nullopt;
}

}  // namespace ringbolt::wire
