#include "cluster/address.h"

#include <fmt/format.h>

#include "cluster/limits.h"

namespace ringbolt::cluster {
namespace {

// FNV-1a, folded to 24 bits by xor as its authors recommend for sizes that are not powers of two.
uint64_t hash_24(std::string_view text) {
  uint32_t hash = 2166136261U;
  for (const char c : text) {
    hash = (hash ^ static_cast<uint8_t>(c)) * 16777619U;
  }
  return (hash >> 24U) ^ (hash & 0xffffffU);
}

}  // namespace

uint32_t port_ipv4(uint32_t node, uint32_t port_index) {
  // Of the loopback network, so that no such address ever leaves the machine.
  return (127U << 24U) | (77U << 16U) | (node << 8U) | (port_index + kFirstPortNumber);
}

uint64_t port_guid(std::string_view cluster, uint32_t node, uint32_t port_index) {
  constexpr uint64_t kPrefix = 0x025242;  // 02: locally administered; 52 42: "RB"
  return (kPrefix << 40U) | (hash_24(cluster) << 16U) | (uint64_t{node} << 8U) | (port_index + kFirstPortNumber);
}

uint32_t stream_ipv4(uint64_t guid) {
  // RFC 3927, section 2.1, reserves the first and last 256 addresses of 169.254/16.
  constexpr uint32_t kFirst = 0xa9fe'0100U;     // 169.254.1.0
  constexpr uint32_t kAddresses = 254U * 256U;  // up to 169.254.254.255
  return kFirst + static_cast<uint32_t>((guid ^ (guid >> 32U)) % kAddresses);
}

std::string ipv4_text(uint32_t ipv4) {
  return fmt::format("{}.{}.{}.{}", ipv4 >> 24U, (ipv4 >> 16U) & 0xffU, (ipv4 >> 8U) & 0xffU, ipv4 & 0xffU);
}

std::string guid_text(uint64_t guid) { return fmt::format("0x{:016x}", guid); }

}  // namespace ringbolt::cluster
