#include "rsocket/datagram_headers.h"

#include <arpa/inet.h>

namespace ringbolt::rsocket {
namespace {

constexpr uint32_t kTag = 0x55555555;
// Queue pair numbers have 24 bits.
constexpr uint32_t kQpnMask = 0xffffff;

sockaddr_in& v4(Address& address) { return reinterpret_cast<sockaddr_in&>(address.storage); }
const sockaddr_in& v4(const Address& address) { return reinterpret_cast<const sockaddr_in&>(address.storage); }
sockaddr_in6& v6(Address& address) { return reinterpret_cast<sockaddr_in6&>(address.storage); }
const sockaddr_in6& v6(const Address& address) { return reinterpret_cast<const sockaddr_in6&>(address.storage); }

template <class T>
void put(std::span<std::byte> out, size_t at, const T& value) {
  std::memcpy(out.data() + at, &value, sizeof value);
}

template <class T>
void get(std::span<const std::byte> in, size_t at, T& value) {
  std::memcpy(&value, in.data() + at, sizeof value);
}

/// An empty address of the family that a version byte names; nothing for another version.
std::optional<Address> of_version(std::byte version) {
  Address address;
  address.storage.ss_family = version == std::byte{4} ? AF_INET : AF_INET6;
  return version == std::byte{4} || version == std::byte{6} ? std::optional(address) : std::nullopt;
}

std::byte version_of(const Address& address) { return address.family() == AF_INET ? std::byte{4} : std::byte{6}; }

}  // namespace

void DatagramHeader::emit(std::span<std::byte> out) const {
  out[0] = version_of(source);
  out[1] = static_cast<std::byte>(bytes());
  if (source.family() == AF_INET) {
    put(out, 2, v4(source).sin_port);
    put(out, 4, v4(source).sin_addr);
  } else {
    put(out, 2, v6(source).sin6_port);
    put(out, 4, v6(source).sin6_flowinfo);
    put(out, 8, v6(source).sin6_addr);
  }
}

std::optional<DatagramHeader> DatagramHeader::parse(std::span<const std::byte> in) {
  const auto source = in.size() < 2 ? std::nullopt : of_version(in[0]);
  if (!source) {
    return std::nullopt;
  }
  DatagramHeader header{*source};
  if (in.size() < header.bytes() || std::to_integer<size_t>(in[1]) != header.bytes()) {
    return std::nullopt;
  }
  if (header.source.family() == AF_INET) {
    get(in, 2, v4(header.source).sin_port);
    get(in, 4, v4(header.source).sin_addr);
  } else {
    get(in, 2, v6(header.source).sin6_port);
    get(in, 4, v6(header.source).sin6_flowinfo);
    get(in, 8, v6(header.source).sin6_addr);
  }
  return header;
}

void GreetingHeader::emit(std::span<std::byte> out) const {
  put(out, 0, htonl(kTag));
  out[4] = version_of(address);
  out[5] = static_cast<std::byte>(op);
  out[6] = static_cast<std::byte>(bytes());
  out[7] = std::byte{0};
  const uint32_t masked = qpn & kQpnMask;
  put(out, 8, htonl(masked));
  if (address.family() == AF_INET) {
    put(out, 12, v4(address).sin_addr);
  } else {
    put(out, 12, v6(address).sin6_addr);
  }
}

std::optional<GreetingHeader> GreetingHeader::parse(std::span<const std::byte> in) {
  const auto address = in.size() < 12 ? std::nullopt : of_version(in[4]);
  uint32_t tag = 0;
  if (address) {
    get(in, 0, tag);
  }
  if (ntohl(tag) != kTag) {
    return std::nullopt;
  }
  GreetingHeader header;
  header.op = static_cast<Op>(in[5]);
  header.address = *address;
  if (in.size() < header.bytes() || std::to_integer<size_t>(in[6]) != header.bytes()) {
    return std::nullopt;
  }
  get(in, 8, header.qpn);
  header.qpn = ntohl(header.qpn) & kQpnMask;
  if (header.address.family() == AF_INET) {
    get(in, 12, v4(header.address).sin_addr);
  } else {
    get(in, 12, v6(header.address).sin6_addr);
  }
  return header;
}

}  // namespace ringbolt::rsocket
