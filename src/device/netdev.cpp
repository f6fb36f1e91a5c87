#include "device/netdev.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netpacket/packet.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/error.h"
#include "base/unique_fd.h"
#include "device/limits.h"

namespace ringbolt::device {
namespace {

using Addresses = std::unique_ptr<ifaddrs, decltype(&freeifaddrs)>;

constexpr const char* kVariable = "RINGBOLT_NETDEVS";
// IP, UDP and the longest transport headers around a payload.
constexpr uint32_t kMostHeaderBytes = 96;

/// getifaddrs(3): a list of all interfaces, each once for every address, and once for its link.
Addresses all_addresses() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) {
    throw base::Error(errno, "getifaddrs", "network interfaces");
  }
  return {list, &freeifaddrs};
}

std::string names_of(const ifaddrs* list) {
  std::vector<std::string> names;
  for (; list != nullptr; list = list->ifa_next) {
    if (std::ranges::find(names, list->ifa_name) == names.end()) {
      names.emplace_back(list->ifa_name);
    }
  }
  std::string text;
  for (const std::string& name : names) {
    text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

uint32_t interface_mtu(const std::string& name) {
  const base::UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strncpy(request.ifr_name, name.c_str(), sizeof request.ifr_name - 1);
  if (!socket.is_open() || ioctl(socket.get(), SIOCGIFMTU, &request) != 0) {
    throw base::Error(errno, "ask for the MTU", name);
  }
  return static_cast<uint32_t>(request.ifr_mtu);
}

/// RFC 4291, appendix A: 48-bit addresses get ff:fe in their middle. Interfaces without an address (lo) get one made
/// from their number.
uint64_t guid_of(const ifaddrs* list, const Netdev& netdev) {
  constexpr uint64_t kMadeUp = 0x0252420000000000U;
  for (; list != nullptr; list = list->ifa_next) {
    if (netdev.name != list->ifa_name || list->ifa_addr == nullptr || list->ifa_addr->sa_family != AF_PACKET) {
      continue;
    }
    sockaddr_ll link{};
    std::memcpy(&link, list->ifa_addr, sizeof link);
    const uint8_t* mac = link.sll_addr;
    if (link.sll_halen == 6 && std::any_of(mac, mac + 6, [](uint8_t byte) { return byte != 0; })) {
      return (uint64_t{mac[0]} << 56U) | (uint64_t{mac[1]} << 48U) | (uint64_t{mac[2]} << 40U) | (0xfffeULL << 24U) |
             (uint64_t{mac[3]} << 16U) | (uint64_t{mac[4]} << 8U) | mac[5];
    }
  }
  return kMadeUp | netdev.index;
}

/// Place in the table: link-local first, where programs for one cable look, then IPv4.
enum class Rank { link_local, ipv4, other, none };

Rank read_gid(const sockaddr* address, ibv_gid& gid) {
  gid = {};
  if (address->sa_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, address, sizeof in);
    gid.raw[10] = gid.raw[11] = 0xff;
    std::memcpy(gid.raw + 12, &in.sin_addr, 4);
    return Rank::ipv4;
  }
  if (address->sa_family != AF_INET6) {
    return Rank::none;
  }
  sockaddr_in6 in6{};
  std::memcpy(&in6, address, sizeof in6);
  std::memcpy(gid.raw, &in6.sin6_addr, sizeof gid.raw);
  return IN6_IS_ADDR_LINKLOCAL(&in6.sin6_addr) ? Rank::link_local : Rank::other;
}

std::vector<ibv_gid> gids_of(const ifaddrs* list, const std::string& name) {
  std::vector<std::pair<Rank, ibv_gid>> found;
  for (; list != nullptr; list = list->ifa_next) {
    ibv_gid gid{};
    if (list->ifa_addr != nullptr && name == list->ifa_name) {
      if (const Rank rank = read_gid(list->ifa_addr, gid); rank != Rank::none) {
        found.emplace_back(rank, gid);
      }
    }
  }
  std::ranges::stable_sort(found, {}, [](const auto& entry) { return entry.first; });
  std::vector<ibv_gid> gids;
  for (size_t i = 0; i < std::min<size_t>(found.size(), kGidTableLength); ++i) {
    gids.push_back(found[i].second);
  }
  return gids;
}

}  // namespace

Netdev read_netdev(const std::string& name) {
  const Addresses addresses = all_addresses();
  Netdev netdev;
  netdev.name = name;
  netdev.index = if_nametoindex(name.c_str());
  if (netdev.index == 0) {
    throw base::Error(ENODEV, "find the network interface", name,
                      "this network namespace has: " + names_of(addresses.get()));
  }
  netdev.mtu_bytes = interface_mtu(name);
  netdev.guid = guid_of(addresses.get(), netdev);
  netdev.gids = gids_of(addresses.get(), name);
  netdev.is_up = is_interface_up(netdev.index);
  return netdev;
}

bool is_interface_up(uint32_t index) {
  ifreq request{};
  if (if_indextoname(index, request.ifr_name) == nullptr) {
    return false;
  }
  const base::UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) {
    throw base::Error(errno, "ask for the flags", request.ifr_name);
  }
  // netdevice(7): brought up by somebody, and with a carrier.
  constexpr int kWanted = IFF_UP | IFF_RUNNING;
  return ioctl(socket.get(), SIOCGIFFLAGS, &request) == 0 && (request.ifr_flags & kWanted) == kWanted;
}

std::vector<ibv_gid> read_gids(uint32_t index) {
  std::array<char, IF_NAMESIZE> name{};
  return if_indextoname(index, name.data()) == nullptr ? std::vector<ibv_gid>{}
                                                       : gids_of(all_addresses().get(), name.data());
}

Netdev read_link(uint32_t index) {
  std::array<char, IF_NAMESIZE> name{};
  Netdev netdev;
  netdev.index = index;
  if (if_indextoname(index, name.data()) != nullptr) {
    try {
      netdev.mtu_bytes = interface_mtu(name.data());
      netdev.name = name.data();
    } catch (const base::Error&) {  // it went meanwhile
    }
  }
  return netdev;
}

bool is_ipv4(const ibv_gid& gid) {
  constexpr std::array<uint8_t, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(gid.raw, kMapped.data(), kMapped.size()) == 0;
}

std::vector<std::string> netdev_names(const std::string& list) {
  std::vector<std::string> names;
  size_t begin = 0;
  while (begin <= list.size()) {
    const size_t end = std::min(list.find(',', begin), list.size());
    std::string name = list.substr(begin, end - begin);
    if (name.empty() || std::ranges::find(names, name) != names.end()) {
      throw base::Error(EINVAL, "read the list of interfaces", std::string(kVariable) + "=" + list,
                        "give each interface once, separated by commas");
    }
    names.push_back(std::move(name));
    begin = end + 1;
  }
  return names;
}

ibv_mtu path_mtu_of(uint32_t mtu_bytes) {
  constexpr struct {
    uint32_t bytes;
    ibv_mtu mtu;
  } kSteps[] = {{4096, IBV_MTU_4096}, {2048, IBV_MTU_2048}, {1024, IBV_MTU_1024}, {512, IBV_MTU_512}};
  for (const auto& step : kSteps) {
    if (mtu_bytes >= interface_mtu_for(step.bytes)) {
      return step.mtu;
    }
  }
  return IBV_MTU_256;
}

uint32_t interface_mtu_for(uint32_t path_mtu_bytes) { return path_mtu_bytes + kMostHeaderBytes; }

}  // namespace ringbolt::device
