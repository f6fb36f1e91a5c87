#include "cluster/node_file.h"

#include <cerrno>
#include <charconv>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "cluster/address.h"
#include "cluster/limits.h"
#include "cluster/names.h"
#include "cluster/read_file.h"

namespace ringbolt::cluster {
namespace {

template <class T>
// All of `text`, in `base`; nothing if it does not fit into T. No sign, no "0x", no blank.
std::optional<T> whole_number(std::string_view text, int base) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size() || text.empty()) {
    return std::nullopt;
  }
  return value;
}

/// The words of one line, taken in order. The first refusal sticks; later reads give zeros. Words are views into the
/// line that the constructor was given, which must outlive them.
class Words {
 public:
  Words(std::string_view line, size_t line_number) : rest_(line), line_number_(line_number) {}

  // `what` completes "... is missing". Empty after the last word: every caller refuses an empty word.
  std::string_view next(std::string_view what) {
    // One space exactly: two in a row give an empty word, which is a refusal.
    const size_t space = rest_.find(' ');
    const std::string_view word = rest_.substr(0, space);
    rest_ = space == std::string_view::npos ? std::string_view{} : rest_.substr(space + 1);
    if (word.empty()) {
      complain(fmt::format("{} is missing", what));
    }
    return word;
  }

  void keyword(std::string_view expected) {
    if (next(expected) != expected) {
      complain(fmt::format("expected the word \"{}\"", expected));
    }
  }

  // Bounds are inclusive.
  uint32_t number(std::string_view what, uint32_t least, uint32_t most) {
    const std::optional<uint32_t> value = whole_number<uint32_t>(next(what), 10);
    if (!value || *value < least || *value > most) {
      complain(fmt::format("{} is not a number from {} to {}", what, least, most));
      // A value in range, so that callers may go on to the end of the line and refuse there.
      return least;
    }
    return *value;
  }

  // 0 is no GUID: it stands for "none" elsewhere.
  uint64_t guid(std::string_view what) {
    const std::string_view word = next(what);
    std::optional<uint64_t> value;
    // 18: "0x" and 16 digits. from_chars() takes no sign for an unsigned number.
    if (word.size() == 18 && word.substr(0, 2) == "0x") {
      value = whole_number<uint64_t>(word.substr(2), 16);
    }
    if (!value || *value == 0) {
      complain(fmt::format("{} is not 0x and 16 hexadecimal digits, or is 0", what));
      return 0;
    }
    return *value;
  }

  uint32_t ipv4(std::string_view what) {
    std::string_view word = next(what);
    uint32_t address = 0;
    for (int byte = 0; byte < 4; ++byte) {
      // By hand, not with inet_pton(): the word is a view without an end.
      const size_t dot = byte < 3 ? word.find('.') : word.size();
      const std::optional<uint8_t> value =
          dot == std::string_view::npos ? std::nullopt : whole_number<uint8_t>(word.substr(0, dot), 10);
      if (!value) {
        complain(fmt::format("{} is not an IPv4 address", what));
        return 0;
      }
      address = (address << 8U) | *value;
      word = byte < 3 ? word.substr(dot + 1) : std::string_view{};
    }
    return address;
  }

  /// What carries the port, if the line goes on: "netdev" and an interface, or "stream" and its streams.
  void carrier(PortSpec& port) {
    if (rest_.starts_with("stream ")) {
      port.stream = stream();
    } else if (!rest_.empty()) {
      port.netdev = netdev();
    }
  }

  std::string stream() {
    keyword("stream");
    const std::string_view word = next("the stream");
    if (!is_stream_text(word)) {
      complain(fmt::format("the stream is not 1 to {} printable letters without quotes and ;", kMaxStreamBytes));
    }
    // Cut all the same: a refused line must not make us copy much.
    return std::string(word.substr(0, kMaxStreamBytes));
  }

  std::string netdev() {
    keyword("netdev");
    const std::string_view word = next("the interface");
    if (!is_netdev_name(word)) {
      // A name from a file reaches the kernel and folders of /sys: hence the check here too, though `ringbolt up`
      // made it.
      complain(fmt::format("the interface is not 1 to {} of [A-Za-z0-9_.-], or is \"lo\"", kMaxNetdevBytes));
    }
    return std::string(word.substr(0, kMaxNetdevBytes));
  }

  /// What stands after the word "like", if the line goes on; else "".
  std::string optional_like() {
    if (rest_.empty()) {
      return "";
    }
    keyword("like");
    const std::string_view word = next("the profile");
    if (!is_profile_text(word)) {
      complain(fmt::format("the profile is not 1 to {} of [a-z0-9=,._-]", kMaxProfileBytes));
    }
    return std::string(word.substr(0, kMaxProfileBytes));
  }

  std::string device(std::string_view what) {
    const std::string_view word = next(what);
    if (!is_device_name(word)) {
      complain(fmt::format("{} is not 1 to {} letters, digits or '_' beginning with a letter", what, kMaxNameBytes));
    }
    return std::string(word.substr(0, kMaxNameBytes));
  }

  // The first one is kept, which is the leftmost of the line.
  void complain(std::string problem) {
    if (!problem_) {
      problem_ = ParseError{line_number_, std::move(problem)};
    }
  }

  // The first complaint of the line; none: the line was good. Values that were read before it may be used only then.
  std::optional<ParseError> finish() {
    if (!rest_.empty()) {
      complain("unexpected words at the end");
    }
    return problem_;
  }

 private:
  std::string_view rest_;
  size_t line_number_;
  std::optional<ParseError> problem_;
};

// 127.0.0.0/8 (RFC 1122, 3.2.1.3).
bool is_loopback(uint32_t ipv4) { return ipv4 >> 24U == 127; }

// The order of docs/cluster.md. All is read even after a complaint: words has the first one.
PortSpec read_port(Words& words, uint32_t n_cables) {
  PortSpec port;
  words.keyword("port");
  port.device = words.device("the device");
  words.keyword("guid");
  port.guid = words.guid("the GUID");
  words.keyword("addr");
  port.ipv4 = words.ipv4("the address");
  words.keyword("cable");
  // n_cables is at least 1: a head that says else was refused.
  port.cable = words.number("the cable", 0, n_cables - 1);
  words.keyword("speed_gbps");
  port.speed_gbps = words.number("the speed", 1, kMaxSpeedGbps);
  words.keyword("peer-node");
  port.peer_node = words.number("the peer's node", 0, kMaxNodes - 1);
  words.keyword("peer-port");
  port.peer_device = words.device("the peer's device");
  words.keyword("peer-guid");
  port.peer_guid = words.guid("the peer's GUID");
  words.keyword("peer-addr");
  port.peer_ipv4 = words.ipv4("the peer's address");
  words.carrier(port);
  const bool is_emulated = port.netdev.empty() && port.stream.empty();
  for (const uint32_t address : {port.ipv4, port.peer_ipv4}) {
    // Emulated ports never reach a network; those of interfaces must not look as if they were emulated.
    if (is_emulated && !is_loopback(address)) {
      words.complain(fmt::format("address {} is not in 127.0.0.0/8", ipv4_text(address)));
    } else if (!is_emulated && is_loopback(address)) {
      words.complain(fmt::format("address {} of an interface is in 127.0.0.0/8", ipv4_text(address)));
    }
  }
  return port;
}

/// Both ends of one cable may be ports of this node; a third mention is a mistake.
bool is_cable_free(const NodeSpec& spec, const PortSpec& port) {
  size_t uses = 0;
  for (const PortSpec& other : spec.ports) {
    if (other.cable == port.cable) {
      ++uses;
      if (other.peer_guid != port.guid || port.peer_guid != other.guid) {
        return false;
      }
    }
  }
  // One use so far, the other end, which names this port as its peer; a loopback plug has no other end here.
  return uses <= 1;
}

// What is wrong with `port` beside those that were read before; nothing: it may be added.
std::optional<std::string> clash(const NodeSpec& spec, const PortSpec& port) {
  for (const PortSpec& other : spec.ports) {
    if (other.device == port.device) {
      return fmt::format("device {} is named twice", port.device);
    }
    if (other.guid == port.guid) {
      return fmt::format("GUID {} of {} and {} is the same", guid_text(port.guid), other.device, port.device);
    }
    if (other.stream.empty() != port.stream.empty() || (!port.stream.empty() && other.stream == port.stream)) {
      return fmt::format("{} and {} are not both at streams of their own", other.device, port.device);
    }
    if (other.netdev.empty() != port.netdev.empty()) {
      return fmt::format("of {} and {} only one has an interface", other.device, port.device);
    }
    if (!port.netdev.empty() && other.netdev == port.netdev) {
      return fmt::format("interface {} of {} and {} is the same", port.netdev, other.device, port.device);
    }
    // 0: an interface without an IPv4 address; several may be so.
    if (other.ipv4 == port.ipv4 && port.ipv4 != 0) {
      return fmt::format("address {} of {} and {} is the same", ipv4_text(port.ipv4), other.device, port.device);
    }
  }
  if (!is_cable_free(spec, port)) {
    return fmt::format("cable {} is plugged into {} and another port already", port.cable, port.device);
  }
  return std::nullopt;
}

// `number` is that of the line, from 1.
std::optional<ParseError> read_head(std::string_view line, size_t number, NodeSpec& spec) {
  Words words(line, number);
  // Lines 1 to 3, in this order (docs/cluster.md, "node files").
  switch (number) {
    case 1:
      words.keyword("ringbolt-node");
      words.number("the format's version", 1, 1);
      break;
    case 2: {
      words.keyword("cluster");
      const std::string_view name = words.next("the cluster's name");
      if (!is_cluster_name(name)) {
        words.complain("the cluster's name is not 1 to 32 of [A-Za-z0-9_.-]");
      }
      spec.cluster = name;
      words.keyword("cables");
      spec.n_cables = words.number("the number of cables", 1, kMaxCables);
      break;
    }
    default: {
      words.keyword("node");
      spec.node = words.number("the node", 0, kMaxNodes - 1);
      words.keyword("name");
      const std::string_view name = words.next("the node's name");
      if (!is_node_name(name)) {
        words.complain("the node's name is not 1 to 32 of [A-Za-z0-9_.-], or is a number or \"local\"");
      }
      spec.name = name;
      spec.like = words.optional_like();
      break;
    }
  }
  return words.finish();
}

constexpr size_t kHeadLines = 3;

std::optional<ParseError> read_overlay(std::string_view line, size_t number, NodeSpec& spec) {
  Words words(line, number);
  words.keyword("overlay");
  words.keyword("nodes");
  if (spec.n_overlay_nodes != 0) {
    words.complain("the overlay is named twice");
  }
  // This node is one of them, so that there are more than its index.
  spec.n_overlay_nodes = words.number("the number of nodes", spec.node + 1, kMaxNodes);
  return words.finish();
}

}  // namespace

Parsed<NodeSpec> parse_node(std::string_view text) {
  if (text.size() > kMaxNodeFileBytes) {
    return refuse(0, fmt::format("{} bytes are more than a node file's {}", text.size(), kMaxNodeFileBytes));
  }
  NodeSpec spec;
  size_t number = 0;
  while (!text.empty()) {
    const size_t newline = text.find('\n');
    const std::string_view line = text.substr(0, newline);
    text = newline == std::string_view::npos ? std::string_view{} : text.substr(newline + 1);
    ++number;
    if (number <= kHeadLines) {
      if (std::optional<ParseError> problem = read_head(line, number, spec)) {
        return tl::unexpected<ParseError>(std::move(*problem));
      }
      continue;
    }
    if (line.starts_with("overlay ")) {
      if (std::optional<ParseError> problem = read_overlay(line, number, spec)) {
        return tl::unexpected<ParseError>(std::move(*problem));
      }
      continue;
    }
    // Checked before the line is read: clash() is quadratic.
    if (spec.ports.size() == kMaxPortsPerNode) {
      return refuse(number, fmt::format("more than {} ports", kMaxPortsPerNode));
    }
    Words words(line, number);
    PortSpec port = read_port(words, spec.n_cables);
    if (std::optional<ParseError> problem = words.finish()) {
      return tl::unexpected<ParseError>(std::move(*problem));
    }
    if (std::optional<std::string> problem = clash(spec, port)) {
      return refuse(number, std::move(*problem));
    }
    spec.ports.push_back(std::move(port));
  }
  if (number < kHeadLines) {
    return refuse(0, fmt::format("ends after {} of its {} first lines", number, kHeadLines));
  }
  return spec;
}

// `spec` must be one that parse_node() would take: nothing is checked here.
std::string emit_node(const NodeSpec& spec) {
  std::string text = fmt::format("ringbolt-node 1\ncluster {} cables {}\nnode {} name {}{}{}\n", spec.cluster,
                                 spec.n_cables, spec.node, spec.name, spec.like.empty() ? "" : " like ", spec.like);
  for (const PortSpec& port : spec.ports) {
    text += fmt::format(
        "port {} guid {} addr {} cable {} speed_gbps {} peer-node {} peer-port {} peer-guid {} peer-addr {}{}{}{}{}\n",
        port.device, guid_text(port.guid), ipv4_text(port.ipv4), port.cable, port.speed_gbps, port.peer_node,
        port.peer_device, guid_text(port.peer_guid), ipv4_text(port.peer_ipv4), port.netdev.empty() ? "" : " netdev ",
        port.netdev, port.stream.empty() ? "" : " stream ", port.stream);
  }
  if (spec.n_overlay_nodes != 0) {
    text += fmt::format("overlay nodes {}\n", spec.n_overlay_nodes);
  }
  return text;
}

NodeSpec load_node(const std::string& path) {
  const std::string text = read_file(path, kMaxNodeFileBytes);
  // A node file is made by `ringbolt up`, never by hand: the remedy is to make it anew.
  Parsed<NodeSpec> spec = parse_node(text);
  if (!spec) {
    throw base::Error(EINVAL, spec.error().text(), path, "make the cluster anew: ringbolt down, then ringbolt up");
  }
  return std::move(*spec);
}

}  // namespace ringbolt::cluster
