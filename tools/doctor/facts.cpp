#include "doctor/facts.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cctype>
#include <charconv>

namespace ringbolt::tools::doctor {
namespace {

std::string_view value_in(const Host::Texts& texts, std::string_view key) {
  const auto found = texts.find(key);
  return found == texts.end() ? std::string_view() : std::string_view(found->second);
}

/// Lines KEY, mark, VALUE. Of a key that comes again the last one counts.
void add_pairs(Host::Texts& to, std::string_view text, std::string_view mark) {
  for (const std::string_view line : lines_of(text)) {
    if (const size_t at = line.find(mark); at != std::string_view::npos) {
      to.insert_or_assign(std::string(line.substr(0, at)), std::string(line.substr(at + mark.size())));
    }
  }
}

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

void read(Host& host) {
  host.is_mac = trimmed(host.text("uname")) == "Darwin";
  for (const char* part : {"interfaces", "devices", "thunderbolt", "system"}) {
    add_files(host, host.text(part));
  }
  add_pairs(host.links, host.text("links"), " -> ");
  add_pairs(host.links, host.text("sleep"), " -> ");
  add_pairs(host.environment, host.text("environment"), "=");
  host.is_mac ? read_mac(host) : read_linux(host);
}

}  // namespace

Value Netdev::file(std::string_view file) const {
  return host->is_mac ? host->line("ifconfig -a", name + ": flags")
                      : host->file(std::string("/sys/class/net/").append(name).append("/").append(file));
}

Value Address::value() const { return port->host->line_of(port->host->is_mac ? "ifconfig -a" : "ip -o address", line); }

Value Device::file(std::string_view file) const { return host->file(std::string(folder).append("/").append(file)); }

std::string_view Host::text(std::string_view source) const {
  const Reading* found = recording->find(name, source);
  return found == nullptr ? std::string_view() : std::string_view(found->text);
}

std::string_view Host::problem(std::string_view source) const {
  const Reading* found = recording->find(name, source);
  return found == nullptr ? std::string_view() : std::string_view(found->problem);
}

Value Host::file(std::string_view path) const { return line_of(path, value_in(files, path)); }

std::string_view Host::variable(std::string_view wanted) const { return value_in(environment, wanted); }

Host::Range Host::files_below(std::string_view folder) const {
  const auto begin = files.lower_bound(folder);
  return {begin, std::find_if(begin, files.end(), [&](const auto& one) { return !one.first.starts_with(folder); })};
}

const Host* Facts::host_of_node(uint32_t node) const {
  if (!plan || node >= plan->nodes.size()) {
    return nullptr;
  }
  const cluster::Node& one = plan->nodes[node];
  const auto by_name = [&](const std::string& name) {
    return first_of(hosts, [&](const Host& host) { return !name.empty() && host.name == name; });
  };
  const Host* found = by_name(one.name);
  return found != nullptr ? found : by_name(one.host);
}

std::unique_ptr<const Facts> facts_of(Recording recording) {
  auto facts = std::make_unique<Facts>();
  facts->recording = std::move(recording);
  for (const std::string& name : facts->recording.hosts()) {
    facts->hosts.emplace_back(Host{name, &facts->recording});
  }
  std::ranges::for_each(facts->hosts, read);  // which stay where they are from here on
  find_links(*facts);
  auto& [hosts, ports, devices, links] = facts->judged;
  for (Host& host : facts->hosts) {
    hosts.push_back(&host);
    for (Netdev& port : host.netdevs) {
      if (port.is_cabled) {
        ports.push_back(&port);
      }
      for (Address& one : port.addresses) {
        one.port = &port;
        if (one.ip.is_ipv4()) {
          facts->ipv4_addresses.push_back(&one);
        }
      }
    }
    for (const Device& one : host.devices) {
      devices.push_back(&one);
    }
  }
  for (const Link& one : facts->links) {
    links.push_back(&one);
  }
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

std::string_view word_at(std::string_view line, size_t index) {
  const auto words = words_of(line);
  return index < words.size() ? words[index] : "";
}

std::string_view word_after(std::string_view line, std::string_view mark) {
  const auto words = words_of(line);
  const auto at = std::ranges::find(words, mark);
  return at == words.end() || at + 1 == words.end() ? "" : at[1];
}

uint64_t number_of(std::string_view text) {
  text = trimmed(text);
  const int base = text.starts_with("0x") ? 16 : 10;
  text.remove_prefix(base == 16 ? 2 : 0);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return error == std::errc::result_out_of_range ? UINT64_MAX : error == std::errc{} ? value : 0;
}

bool is_digits(std::string_view text) { return text.find_first_not_of("0123456789") == std::string_view::npos; }

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  return begin == std::string_view::npos ? "" : text.substr(begin, text.find_last_not_of(" \t\r\n") + 1 - begin);
}

bool contains(std::string_view text, std::string_view part) {
  const auto is_same = [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); };
  return part.empty() || std::search(text.begin(), text.end(), part.begin(), part.end(), is_same) != text.end();
}

std::string_view line_with(std::string_view text, std::string_view part) {
  const auto lines = lines_of(text);
  const auto found = std::ranges::find_if(lines, [&](std::string_view line) { return contains(line, part); });
  return found == lines.end() ? "" : *found;
}

}  // namespace ringbolt::tools::doctor
