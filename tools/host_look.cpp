#include "host_look.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <memory>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "captured.h"
#include "cluster/names.h"
#include "cluster/read_file.h"
#include "failure.h"
#include "thunderbolt_look.h"
#include "version.h"

namespace ringbolt::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostRouteBytes = size_t{16} << 20U;

/// Names of the interfaces in a file of routes whose first field(s) are all zero: /proc/net/route has the name first,
/// /proc/net/ipv6_route last.
void add_default_routes(const char* path, std::set<std::string>& names) {
  std::istringstream lines;
  try {
    lines.str(cluster::read_file(path, kMostRouteBytes));
  } catch (const base::Error&) {
    return;  // no such family here
  }
  for (std::string line; std::getline(lines, line);) {
    std::istringstream text(line);
    std::vector<std::string> words;
    for (std::string word; text >> word;) {
      words.push_back(word);
    }
    const bool is_ipv4 = words.size() >= 8 && words[1] == "00000000" && words[7] == "00000000";
    const bool is_ipv6 = words.size() == 10 && words[0] == std::string(32, '0') && words[1] == "00";
    if (is_ipv4) {
      names.insert(words.front());
    } else if (is_ipv6) {
      names.insert(words.back());
    }
  }
}

uint8_t prefix_of(const uint8_t* mask, size_t bytes) {
  int bits = 0;
  for (size_t i = 0; i < bytes; ++i) {
    bits += std::popcount(mask[i]);
  }
  return static_cast<uint8_t>(bits);
}

/// Appends the address of `one`, if it has a family that we know.
void add_address(const ifaddrs& one, std::vector<cluster::IpAddress>& addresses) {
  if (one.ifa_addr == nullptr || one.ifa_netmask == nullptr) {
    return;
  }
  if (one.ifa_addr->sa_family == AF_INET) {
    sockaddr_in address{};
    sockaddr_in mask{};
    std::memcpy(&address, one.ifa_addr, sizeof address);
    std::memcpy(&mask, one.ifa_netmask, sizeof mask);
    addresses.push_back(cluster::IpAddress::from_ipv4(
        ntohl(address.sin_addr.s_addr), prefix_of(reinterpret_cast<const uint8_t*>(&mask.sin_addr), sizeof(in_addr))));
  } else if (one.ifa_addr->sa_family == AF_INET6) {
    sockaddr_in6 address{};
    sockaddr_in6 mask{};
    std::memcpy(&address, one.ifa_addr, sizeof address);
    std::memcpy(&mask, one.ifa_netmask, sizeof mask);
    cluster::IpAddress found;
    std::memcpy(found.bytes.data(), &address.sin6_addr, found.bytes.size());
    found.prefix_bits = prefix_of(mask.sin6_addr.s6_addr, sizeof mask.sin6_addr);
    addresses.push_back(found);
  }
}

}  // namespace

HostLook look_here() {
  std::set<std::string> routed;
  add_default_routes("/proc/net/route", routed);
  add_default_routes("/proc/net/ipv6_route", routed);
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) {
    throw base::Error(errno, "getifaddrs", "network interfaces");
  }
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  HostLook look{kVersion, {}, look_at_thunderbolt(thunderbolt_root())};
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    if (!cluster::is_netdev_name(one->ifa_name)) {
      continue;  // lo, and names that would need quoting
    }
    auto found = std::ranges::find(look.interfaces, one->ifa_name, &cluster::Interface::name);
    if (found == look.interfaces.end()) {
      const bool is_up = (one->ifa_flags & IFF_UP) != 0 && (one->ifa_flags & IFF_RUNNING) != 0;
      found = look.interfaces.insert(found, {one->ifa_name, is_up, routed.count(one->ifa_name) != 0, {}});
    }
    add_address(*one, found->addresses);
  }
  return look;
}

std::string emit_look(const HostLook& look) {
  Json root{{"ringbolt", look.version}, {"interfaces", Json::array()}};
  for (const cluster::Interface& one : look.interfaces) {
    Json json{{"name", one.name}, {"up", one.is_up}, {"default_route", one.has_default_route}};
    json["addresses"] = Json::array();
    for (const cluster::IpAddress& address : one.addresses) {
      json["addresses"].push_back(address.text_with_prefix());
    }
    root["interfaces"].push_back(std::move(json));
  }
  root["thunderbolt"] = thunderbolt_to_json(look.thunderbolt);
  return root.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

HostLook parse_look(const std::string& host, const std::string& text) {
  const size_t begin = text.rfind("{\"ringbolt\":");
  try {
    const Json root = Json::parse(begin == std::string::npos ? "" : text.substr(begin));
    HostLook look{root.at("ringbolt").get<std::string>(), {}};
    for (const Json& json : root.at("interfaces")) {
      cluster::Interface one{
          json.at("name").get<std::string>(), json.at("up").get<bool>(), json.at("default_route").get<bool>(), {}};
      for (const Json& address : json.at("addresses")) {
        one.addresses.push_back(cluster::IpAddress::parse(address.get<std::string>()).value());
      }
      if (!cluster::is_netdev_name(one.name)) {
        throw UsageError("its name");
      }
      look.interfaces.push_back(std::move(one));
    }
    if (root.contains("thunderbolt")) {  // else an older version, which is refused in better words than damage
      look.thunderbolt = thunderbolt_from_json(root["thunderbolt"]);
    }
    return look;
  } catch (const std::exception&) {
    throw UsageError(fmt::format("{}: the ringbolt there answered what is no description of a machine: {}", host,
                                 one_line(text.substr(0, 200))));
  }
}

}  // namespace ringbolt::tools
