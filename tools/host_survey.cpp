#include "host_survey.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <memory>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/say.h"
#include "child_process.h"
#include "cluster/cabling.h"
#include "cluster/cluster_file.h"
#include "cluster/names.h"
#include "cluster/read_file.h"
#include "failure.h"
#include "node_environment.h"
#include "ssh.h"
#include "thunderbolt_look.h"
#include "version.h"

namespace ringbolt::tools {
namespace {

struct FoundHost {
  std::string host;
  HostLook look;
};

std::vector<FoundHost> look_at(const std::vector<std::string>& hosts, const std::string& prefix) {
  std::vector<Launch> asked;
  for (const std::string& host : hosts) {
    asked.push_back(ssh_launch(host, prefix, {"host", "look"}));
  }
  const std::vector<Captured> results = run_all(asked, {}, kSshPatienceS);
  std::vector<FoundHost> found;
  std::vector<std::string> problems;
  for (size_t i = 0; i < hosts.size(); ++i) {
    std::string problem = remote_problem(hosts[i], prefix, results[i]);
    if (problem.empty()) {
      try {
        found.push_back({hosts[i], parse_look(hosts[i], results[i].output)});
        if (const std::string& version = found.back().look.version; version != kVersion) {
          problem =
              fmt::format("{} has Ringbolt {}, here is {}: install the same", hosts[i], one_line(version), kVersion);
        }
      } catch (const UsageError& error) {
        problem = error.what();  // the others are told of with it
      }
    }
    if (!problem.empty()) {
      problems.push_back(std::move(problem));
    }
  }
  if (!problems.empty()) {
    refuse_with(problems);
  }
  return found;
}

std::vector<cluster::HostInterfaces> interfaces_of(const std::vector<FoundHost>& found) {
  std::vector<cluster::HostInterfaces> hosts;
  for (const FoundHost& one : found) {
    hosts.push_back({one.host, one.look.interfaces});
  }
  return hosts;
}

/// A cluster file says itself what carries its cables.
void refuse_choices(const UpOptions& options) {
  if (options.is_applied || options.over != "auto") {
    throw UsageError(
        fmt::format("--apply and --over are for hosts whose cables `up` looks for: name them (a,b,c) in place "
                    "of the file {}, or leave the options out",
                    options.hosts));
  }
}

bool wants_streams(const UpOptions& options, const std::vector<FoundHost>& found) {
  if (options.over != "auto") {
    if (options.is_applied && options.over == "network") {
      throw UsageError("--apply makes Thunderbolt streams: leave --over network out");
    }
    return options.over == "streams";
  }
  return options.is_applied ||
         std::ranges::any_of(found, [](const FoundHost& one) { return cluster::offers_streams(one.look.thunderbolt); });
}

void add_stream_cables(const UpOptions& options, const std::vector<FoundHost>& found, HostSurvey& survey) {
  std::vector<cluster::HostThunderbolt> hosts;
  for (const FoundHost& one : found) {
    hosts.push_back({one.host, one.look.thunderbolt});
  }
  cluster::StreamCabling cabling = cluster::find_stream_cables(hosts);
  for (const std::string& note : cabling.notes) {
    base::say(fmt::format("ringbolt up: {}\n", note));
  }
  if (!cabling.problems.empty()) {
    if (options.over == "auto" && !options.is_applied) {
      cabling.problems.emplace_back(
          "Some of these machines have Thunderbolt streams; a cluster is on streams or on network interfaces. For "
          "interfaces: --over network");
    }
    refuse_with(cabling.problems);
  }
  survey.model = std::move(cabling.cluster);
  survey.setups = std::move(cabling.setups);
}

/// Where there are no cables between interfaces, it says why there are none over Thunderbolt either.
cluster::Cluster network_cables(const std::vector<FoundHost>& found) {
  cluster::Parsed<cluster::Cluster> cabled = cluster::find_cables(interfaces_of(found));
  if (cabled) {
    return std::move(*cabled);
  }
  std::vector<std::string> problems{cabled.error().text()};
  for (const FoundHost& one : found) {
    const std::string reason = cluster::why_no_streams({one.host, one.look.thunderbolt});
    if (!one.look.thunderbolt.peers.empty() && !reason.empty()) {
      problems.push_back("as to Thunderbolt, " + reason);
    }
  }
  refuse_with(problems);
}

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

bool names_a_file(const std::string& text) {
  return text.find("://") == std::string::npos &&
         (text.find('/') != std::string::npos || (text.ends_with(".json") && text != ".json"));
}

std::vector<std::string> split_hosts(const std::string& text) {
  std::vector<std::string> hosts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string host = text.substr(begin, end - begin);
    if (!cluster::is_host(host)) {
      throw UsageError(
          fmt::format("--hosts \"{}\": \"{}\" is no host; give a cluster file (a path, or a name that ends in "
                      ".json) or hosts as ssh knows them: a,b,c",
                      text, host));
    }
    if (std::find(hosts.begin(), hosts.end(), host) != hosts.end()) {
      throw UsageError(fmt::format("--hosts: {} is given twice", host));
    }
    hosts.push_back(host);
    begin = end + 1;
  }
  if (hosts.size() > cluster::kMaxNodes) {
    throw UsageError(fmt::format("--hosts: {} hosts are more than a cluster's {}", hosts.size(), cluster::kMaxNodes));
  }
  return hosts;
}

HostSurvey survey_hosts(const UpOptions& options) {
  HostSurvey survey;
  const bool has_file = names_a_file(options.hosts);
  if (has_file) {
    refuse_choices(options);
    survey.model = cluster::load_cluster(options.hosts);
    std::ranges::transform(survey.model.nodes, std::back_inserter(survey.hosts), host_of);
  } else {
    survey.hosts = split_hosts(options.hosts);
  }
  std::string prefix = options.prefix.empty() ? survey.model.prefix : options.prefix;
  if (prefix.empty()) {
    prefix = own_prefix();
  }
  if (!cluster::is_prefix(prefix)) {
    throw UsageError(fmt::format("--prefix \"{}\" is no absolute path", prefix));
  }
  const std::vector<FoundHost> found = look_at(survey.hosts, prefix);
  if (!has_file) {
    if (wants_streams(options, found)) {
      add_stream_cables(options, found, survey);
    } else {
      survey.model = network_cables(found);
    }
    survey.model.name = "hosts";
  }
  if (survey.setups.empty()) {
    cluster::Parsed<cluster::Cluster> whole =
        cluster::with_found_addresses(std::move(survey.model), interfaces_of(found));
    if (!whole) {
      throw UsageError(whole.error().text());
    }
    survey.model = std::move(*whole);
  }
  survey.model.prefix = prefix;
  return survey;
}

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
