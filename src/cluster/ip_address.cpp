#include "cluster/ip_address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include <fmt/format.h>

namespace ringbolt::cluster {
namespace {

constexpr size_t kMappedAt = 12;  // where an IPv4 address lies in its mapped form
constexpr unsigned kIpv4Bits = 32;
constexpr unsigned kIpv6Bits = 128;

std::optional<uint8_t> parse_prefix(std::string_view text, unsigned most) {
  uint8_t bits = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bits);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size() || bits > most) {
    return std::nullopt;
  }
  return bits;
}

// `bits` is 128 at most, and both have as many.
bool has_equal_bits(const uint8_t* a, const uint8_t* b, unsigned bits) {
  const size_t whole = bits / 8;
  if (!std::equal(a, a + whole, b)) {
    return false;
  }
  const unsigned rest = bits % 8;
  // `whole` is 16 only when `rest` is 0: no byte beyond the address is read.
  return rest == 0 || ((a[whole] ^ b[whole]) >> (8 - rest)) == 0;
}

}  // namespace

IpAddress IpAddress::from_ipv4(uint32_t host_order, uint8_t prefix_bits) {
  IpAddress address;
  address.bytes[10] = address.bytes[11] = 0xff;
  for (unsigned i = 0; i < 4; ++i) {
    address.bytes[kMappedAt + i] = static_cast<uint8_t>(host_order >> (24U - 8U * i));
  }
  address.prefix_bits = prefix_bits;
  return address;
}

std::optional<IpAddress> IpAddress::parse(std::string_view text) {
  const size_t slash = text.find('/');
  char plain[INET6_ADDRSTRLEN] = {};
  const size_t length = std::min(slash, text.size());
  // inet_pton() wants a string that ends: INET6_ADDRSTRLEN holds the longest address.
  if (length == 0 || length >= sizeof plain) {
    return std::nullopt;
  }
  text.copy(plain, length);
  IpAddress address;
  in_addr ipv4{};
  const bool is_ipv4 = ::inet_pton(AF_INET, plain, &ipv4) == 1;
  if (is_ipv4) {
    // The prefix is set below, once its bound is known.
    address = from_ipv4(ntohl(ipv4.s_addr), 0);
  } else if (::inet_pton(AF_INET6, plain, address.bytes.data()) != 1 || address.is_ipv4()) {
    return std::nullopt;  // an IPv4 address has one way to be written
  }
  const unsigned most = is_ipv4 ? kIpv4Bits : kIpv6Bits;
  const std::optional<uint8_t> bits =
      // A second '/' or a sign makes parse_prefix() refuse.
      slash == std::string_view::npos ? static_cast<uint8_t>(most) : parse_prefix(text.substr(slash + 1), most);
  if (!bits) {
    return std::nullopt;
  }
  address.prefix_bits = *bits;
  return address;
}

bool IpAddress::is_ipv4() const {
  constexpr std::array<uint8_t, kMappedAt> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::equal(kMapped.begin(), kMapped.end(), bytes.begin());
}

bool IpAddress::is_link_local() const { return bytes[0] == 0xfe && (bytes[1] & 0xc0U) == 0x80; }

uint32_t IpAddress::ipv4() const {
  uint32_t address = 0;
  for (size_t i = kMappedAt; i < bytes.size() && is_ipv4(); ++i) {
    address = (address << 8U) | bytes[i];
  }
  return address;
}

std::string IpAddress::text() const {
  char plain[INET6_ADDRSTRLEN] = {};
  if (is_ipv4()) {
    ::inet_ntop(AF_INET, bytes.data() + kMappedAt, plain, sizeof plain);
  } else {
    ::inet_ntop(AF_INET6, bytes.data(), plain, sizeof plain);
  }
  return plain;
}

std::string IpAddress::text_with_prefix() const { return fmt::format("{}/{}", text(), prefix_bits); }

bool IpAddress::shares_subnet(const IpAddress& other) const {
  if (is_ipv4() != other.is_ipv4()) {
    return false;
  }
  const size_t from = is_ipv4() ? kMappedAt : 0;
  return has_equal_bits(bytes.data() + from, other.bytes.data() + from, std::min(prefix_bits, other.prefix_bits));
}

}  // namespace ringbolt::cluster
