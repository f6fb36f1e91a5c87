#include "bringup/gid.h"

#include <arpa/inet.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace ringbolt::bringup {
namespace {

// ::ffff:0:0/96 (RFC 4291, 2.5.5.2).
constexpr size_t kIpv4At = 12;

bool are_zero(const Gid& gid, size_t count) {
  return std::all_of(gid.begin(), gid.begin() + static_cast<std::ptrdiff_t>(count), [](uint8_t b) { return b == 0; });
}

}  // namespace

Gid gid_of(const ibv_gid& gid) {
  Gid bytes{};
  std::memcpy(bytes.data(), gid.raw, bytes.size());
  return bytes;
}

ibv_gid ibv_gid_of(const Gid& gid) {
  ibv_gid raw{};
  std::memcpy(raw.raw, gid.data(), gid.size());
  return raw;
}

bool is_empty(const Gid& gid) { return are_zero(gid, gid.size()); }

bool is_ipv4(const Gid& gid) { return are_zero(gid, 10) && gid[10] == 0xff && gid[11] == 0xff; }

bool is_link_local(const Gid& gid) {
  return is_ipv4(gid) ? gid[kIpv4At] == 169 && gid[kIpv4At + 1] == 254 : gid[0] == 0xfe && (gid[1] & 0xc0U) == 0x80;
}

bool is_loopback(const Gid& gid) {
  return is_ipv4(gid) ? gid[kIpv4At] == 127 : are_zero(gid, gid.size() - 1) && gid.back() == 1;
}

bool is_routable(const Gid& gid) {
  if (is_ipv4(gid)) {
    // 0.0.0.0/8 is no host's, and from 224 on are groups.
    return !is_link_local(gid) && !is_loopback(gid) && gid[kIpv4At] != 0 && gid[kIpv4At] < 224;
  }
  // Global unicast 2000::/3, unique local fc00::/7.
  return (gid[0] & 0xe0U) == 0x20 || (gid[0] & 0xfeU) == 0xfc;
}

bool speak_alike(GidType a, GidType b) { return a == b || a == GidType::kUnknown || b == GidType::kUnknown; }

unsigned common_bits(const Gid& a, const Gid& b) {
  unsigned bits = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const auto differing = static_cast<uint8_t>(a[i] ^ b[i]);
    if (differing != 0) {
      return bits + static_cast<unsigned>(std::countl_zero(differing));
    }
    bits += 8;
  }
  return bits;
}

std::string text_of(const Gid& gid) {
  char text[INET6_ADDRSTRLEN] = "";
  if (is_ipv4(gid)) {
    ::inet_ntop(AF_INET, gid.data() + kIpv4At, text, sizeof text);
  } else {
    ::inet_ntop(AF_INET6, gid.data(), text, sizeof text);
  }
  return text;
}

}  // namespace ringbolt::bringup
