#include "doctor/facts.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cctype>
#include <charconv>

namespace ringbolt::tools::doctor {
namespace {

/// PATH:LINE, of which a file may have several. Paths that are asked for hold no colon.
void add_files(Host& host, std::string_view text) {
  for (const std::string_view line : lines_of(text)) {
    const size_t colon = line.find(':');
    if (line.starts_with('/') && colon != std::string_view::npos) {
      std::string& value = host.files[std::string(line.substr(0, colon))];
      value.append(value.empty() ? "" : "\n").append(line.substr(colon + 1));
    }
  }
}

void add_links(Host& host, std::string_view text) {
  for (const std::string_view line : lines_of(text)) {
    if (const size_t arrow = line.find(" -> "); arrow != std::string_view::npos) {
      host.links[std::string(line.substr(0, arrow))] = std::string(line.substr(arrow + 4));
    }
  }
}

}  // namespace

const Address* Netdev::ipv4() const {
  const auto found = std::ranges::find_if(addresses, [](const Address& one) { return one.ip.is_ipv4(); });
  return found == addresses.end() ? nullptr : &*found;
}

const Gid* Device::ipv4_gid() const {
  const auto found = std::ranges::find_if(gids, [](const Gid& one) { return one.is_ipv4() && one.is_v2(); });
  return found == gids.end() ? nullptr : &*found;
}

std::string_view Host::text(std::string_view source) const {
  const Reading* found = recording->find(name, source);
  return found == nullptr ? std::string_view() : std::string_view(found->text);
}

std::string_view Host::file(std::string_view path) const {
  const auto found = files.find(path);
  return found == files.end() ? std::string_view() : std::string_view(found->second);
}

uint64_t Host::number(std::string_view path) const { return number_of(file(path)); }

const std::string* Host::variable(std::string_view wanted) const {
  const auto found = environment.find(wanted);
  return found == environment.end() || found->second.empty() ? nullptr : &found->second;
}

const Netdev* Host::netdev(std::string_view wanted) const {
  const auto found = std::ranges::find(netdevs, wanted, &Netdev::name);
  return found == netdevs.end() ? nullptr : &*found;
}

const Device* Host::device(std::string_view wanted) const {
  const auto found = std::ranges::find(devices, wanted, &Device::name);
  return found == devices.end() ? nullptr : &*found;
}

const Device* Host::device_on(std::string_view netdev) const {
  const auto found = std::ranges::find(devices, netdev, &Device::netdev);
  return found == devices.end() ? nullptr : &*found;
}

const Host* Facts::host_of_node(uint32_t node) const {
  if (!plan || node >= plan->nodes.size()) {
    return nullptr;
  }
  const cluster::Node& one = plan->nodes[node];
  for (const std::string& name : {one.name, one.host}) {
    const auto found = std::ranges::find(hosts, name, &Host::name);
    if (!name.empty() && found != hosts.end()) {
      return &*found;
    }
  }
  return nullptr;
}

std::unique_ptr<const Facts> facts_of(Recording recording) {
  auto facts = std::make_unique<Facts>();
  facts->recording = std::move(recording);
  for (const std::string& name : facts->recording.hosts()) {
    Host& host = facts->hosts.emplace_back(Host{name});
    host.recording = &facts->recording;
    host.is_mac = trimmed(host.text("uname")) == "Darwin";
    for (const char* part : {"interfaces", "devices", "thunderbolt", "system"}) {
      add_files(host, host.text(part));
    }
    add_links(host, host.text("links"));
    add_links(host, host.text("sleep"));
    for (const std::string_view line : lines_of(host.text("environment"))) {
      if (const size_t equals = line.find('='); equals != std::string_view::npos) {
        host.environment[std::string(line.substr(0, equals))] = std::string(line.substr(equals + 1));
      }
    }
    host.is_mac ? read_mac(host) : read_linux(host);
  }
  find_links(*facts);
  return facts;
}

std::optional<cluster::IpAddress> ip_of_gid(std::string_view text) {
  cluster::IpAddress ip;
  if (::inet_pton(AF_INET6, std::string(text).c_str(), ip.bytes.data()) != 1 ||
      ip.bytes == cluster::IpAddress().bytes) {
    return std::nullopt;
  }
  ip.prefix_bits = ip.is_ipv4() ? 32 : 128;
  return ip;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  constexpr std::string_view kSpace = " \t\\\r";
  for (size_t begin = line.find_first_not_of(kSpace); begin != std::string_view::npos;) {
    const size_t end = std::min(line.find_first_of(kSpace, begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    begin = line.find_first_not_of(kSpace, end);
  }
  return words;
}

uint64_t number_of(std::string_view text) {
  text = trimmed(text);
  const int base = text.starts_with("0x") ? 16 : 10;
  text.remove_prefix(base == 16 ? 2 : 0);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc::result_out_of_range ? UINT64_MAX : error == std::errc{} ? value : 0;
}

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  return begin == std::string_view::npos ? "" : text.substr(begin, text.find_last_not_of(" \t\r\n") + 1 - begin);
}

bool contains(std::string_view text, std::string_view part) {
  return std::search(text.begin(), text.end(), part.begin(), part.end(),
                     [](char a, char b) {
                       return std::tolower(static_cast<unsigned char>(a)) ==
                              std::tolower(static_cast<unsigned char>(b));
                     }) != text.end() ||
         part.empty();
}

std::string_view line_with(std::string_view text, std::string_view part) {
  for (const std::string_view line : lines_of(text)) {
    if (contains(line, part)) {
      return line;
    }
  }
  return "";
}

}  // namespace ringbolt::tools::doctor
