#include "membership/addresses.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>

namespace ringbolt::membership {
namespace {

// 127.0.0.1: Neighbours listen on IPv4 and IPv6 alike.
constexpr Ip kMappedLoopback = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1};

bool is_mapped(const Ip& ip) {
  return std::all_of(ip.begin(), ip.begin() + 10, [](uint8_t byte) { return byte == 0; }) && ip[10] == 0xff &&
         ip[11] == 0xff;
}

std::optional<Ip> ip_of(const sockaddr* address) {
  Ip ip{};
  if (address == nullptr) {
    return std::nullopt;
  }
  if (address->sa_family == AF_INET) {
    ip[10] = ip[11] = 0xff;
    std::memcpy(ip.data() + 12, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, 4);
    return ip;
  }
  if (address->sa_family == AF_INET6) {
    std::memcpy(ip.data(), &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, ip.size());
    return ip;
  }
  return std::nullopt;
}

// 169.254.0.0/16 (RFC 3927) and fe80::/10 (RFC 4291, 2.5.6): without an interface they lead nowhere.
bool is_of_one_link(const Ip& ip) {
  return is_mapped(ip) ? ip[12] == 169 && ip[13] == 254 : ip[0] == 0xfe && (ip[1] & 0xc0) == 0x80;
}

/// `use`: name, flags and address of each interface.
void each_address(const std::function<void(const char* name, unsigned flags, const Ip& ip)>& use) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) {
    return;
  }
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owned(list, &::freeifaddrs);
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (const auto ip = ip_of(one->ifa_addr)) {
      use(one->ifa_name, one->ifa_flags, *ip);
    }
  }
}

bootstrap::Address address_of(const Ip& ip, uint16_t port) {
  bootstrap::Address address;
  if (is_mapped(ip)) {
    auto* v4 = reinterpret_cast<sockaddr_in*>(&address.bytes);
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    std::memcpy(&v4->sin_addr, ip.data() + 12, 4);
    address.length = sizeof(sockaddr_in);
  } else {
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.bytes);
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    std::memcpy(&v6->sin6_addr, ip.data(), ip.size());
    address.length = sizeof(sockaddr_in6);
  }
  return address;
}

}  // namespace

std::vector<Ip> own_addresses() {
  std::vector<Ip> addresses;
  each_address([&](const char*, unsigned flags, const Ip& ip) {
    const bool is_usable = (flags & IFF_UP) != 0 && (flags & IFF_LOOPBACK) == 0 && !is_of_one_link(ip);
    if (is_usable && addresses.size() < kMostAddresses) {
      addresses.push_back(ip);
    }
  });
  return addresses;
}

std::vector<std::string> interfaces_with(const std::vector<Ip>& addresses) {
  std::vector<std::string> names;
  each_address([&](const char* name, unsigned flags, const Ip& ip) {
    // Soft devices may have an address of the loopback interface, and nobody is at its other end.
    if ((flags & IFF_LOOPBACK) == 0 && std::ranges::find(addresses, ip) != addresses.end() &&
        std::ranges::find(names, name) == names.end()) {
      names.emplace_back(name);
    }
  });
  return names;
}

uint64_t machine_number() {
  std::string boot;
  // Random anew at each start of the kernel (random(4)), so the same in all containers of a machine.
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  struct stat space {};
  (void)::stat("/proc/self/ns/net", &space);  // where there are no namespaces all have the same
  // FNV-1a, 64 bits: only equality counts.
  uint64_t number = 14695981039346656037U;
  for (const char c : boot + ' ' + std::to_string(space.st_ino)) {
    number = (number ^ static_cast<uint8_t>(c)) * 1099511628211U;
  }
  return number;
}

std::vector<bootstrap::Address> ways_to(const Contact& contact, uint64_t own_machine) {
  std::vector<bootstrap::Address> ways;
  if (contact.machine == own_machine) {
    // Works whatever its addresses are, and without a network.
    ways.push_back(address_of(kMappedLoopback, contact.port));
    return ways;
  }
  for (const Ip& ip : contact.addresses) {
    ways.push_back(address_of(ip, contact.port));
  }
  return ways;
}

}  // namespace ringbolt::membership
