#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "cluster/ip_address.h"
#include "cluster/model.h"
#include "doctor/recording.h"

/// What a recording says, taken apart. All of it is pure, takes any bytes, and throws nothing: what can't be understood
/// is left out. Parts point at each other, and so live as long as the Facts that hold them.
namespace ringbolt::tools::doctor {

struct Host;
struct Netdev;

// For all who take texts apart. Views point into the text that was given. A backslash separates words, too: `ip -o`
// writes one for a line end.
std::vector<std::string_view> lines_of(std::string_view text);
std::vector<std::string_view> words_of(std::string_view line);
/// "" if there are not so many.
std::string_view word_at(std::string_view line, size_t index);
/// What follows the word `mark`; "" if nothing does.
std::string_view word_after(std::string_view line, std::string_view mark);
/// The number that `text` begins with; 0 if there is none. A number too large is the greatest.
uint64_t number_of(std::string_view text);
bool is_digits(std::string_view text);
std::string_view trimmed(std::string_view text);
/// Whether `text` has it, whatever the case of letters.
bool contains(std::string_view text, std::string_view part);
/// The first line that has it; "" if there is none.
std::string_view line_with(std::string_view text, std::string_view part);
/// Of a GID, as sysfs or ibv_devinfo writes it; an IPv4-mapped one is IPv4, "::" is none.
std::optional<cluster::IpAddress> ip_of_gid(std::string_view text);

/// The first one that is so; null if there is none.
template <class T, class Is>
const T* first_of(const std::vector<T>& all, Is is) {
  const auto found = std::ranges::find_if(all, is);
  return found == all.end() ? nullptr : &*found;
}

/// What a source said of one thing: what a check judges, and the line that shows it. Its texts are the recording's.
struct Value {
  const Host* host = nullptr;
  std::string source = {};     ///< path of a file, or a command line
  std::string_view text = {};  ///< without spaces around; empty: it was not read, or says nothing
  std::string_view line = {};  ///< that has it, if that is more than `text`

  explicit operator bool() const { return !text.empty(); }
  uint64_t number() const { return number_of(text); }
};

struct Address {
  cluster::IpAddress ip;
  std::string line;              ///< as it was read
  bool is_duplicate = false;     ///< the kernel found it elsewhere
  const Netdev* port = nullptr;  ///< on which it lies

  /// The line that shows it.
  Value value() const;
};

struct Netdev {
  std::string name;
  const Host* host = nullptr;  ///< that it is of
  std::string driver = {};
  std::string pci = {};     ///< "0000:01:00.0"
  std::string master = {};  ///< bridge or bond that owns it
  std::optional<bool> is_up = {};
  std::optional<bool> has_carrier = {};
  uint64_t mtu = 0;          ///< bytes; 0: not known
  uint64_t speed_mbps = 0;   ///< 0: not known
  uint64_t shaped_mbps = 0;  ///< what a queueing discipline holds it to; 0: nothing does
  std::string shaped_line = {};
  std::vector<Address> addresses = {};
  bool has_default_route = false;
  bool is_cabled = false;  ///< carries a cable or an RDMA device, so it is judged as one that should

  /// The first IPv4 address; null if there is none.
  const Address* ipv4() const {
    return first_of(addresses, [](const Address& one) { return one.ip.is_ipv4(); });
  }
  bool has_ip(const cluster::IpAddress& ip) const {
    return std::ranges::any_of(addresses, [&](const Address& one) { return one.ip.bytes == ip.bytes; });
  }
  /// What the kernel says of it: a file of its folder in sysfs; on a Mac the line of ifconfig.
  Value file(std::string_view name) const;
};

struct Gid {
  uint32_t index = 0;
  std::string text;
  std::string type = {};  ///< "RoCE v2", "IB/RoCE v1"
  std::string netdev = {};
  std::optional<cluster::IpAddress> ip = {};  ///< of an IPv4-mapped one too

  bool is_v2() const { return type.find("v2") != std::string::npos; }
  /// What peers look for.
  bool is_ipv4_v2() const { return ip && ip->is_ipv4() && is_v2(); }
};

struct Device {
  std::string name;
  const Host* host = nullptr;
  std::string netdev = {};
  std::string pci = {};     ///< empty: a software device
  std::string folder = {};  ///< of its port in sysfs
  std::string state = {}, link_layer = {}, firmware = {}, type = {};
  std::vector<Gid> gids = {};

  bool is_active() const { return state.find("ACTIVE") != std::string::npos; }
  /// The lowest index of a RoCE v2 GID that is an IPv4 address; null if there is none.
  const Gid* ipv4_gid() const { return first_of(gids, &Gid::is_ipv4_v2); }
  bool is_infiniband() const { return contains(link_layer, "InfiniBand"); }
  /// A file of its port.
  Value file(std::string_view name) const;
};

struct Host {
  using Texts = std::map<std::string, std::string, std::less<>>;
  struct Range {
    Texts::const_iterator first, last;
    auto begin() const { return first; }
    auto end() const { return last; }
  };

  std::string name;
  const Recording* recording = nullptr;
  bool is_mac = false;
  Texts files = {};  ///< of all parts of look.sh that are PATH:LINE
  Texts links = {};
  Texts environment = {};
  std::vector<Netdev> netdevs = {};
  std::vector<Device> devices = {};

  // "" or null for what was not read, or is not there.
  std::string_view text(std::string_view source) const;
  std::string_view problem(std::string_view source) const;
  bool was_asked(std::string_view source) const { return recording->find(name, source) != nullptr; }
  std::string_view variable(std::string_view wanted) const;
  Value line_of(std::string_view source, std::string_view line) const {
    return {this, std::string(source), trimmed(line)};
  }
  Value value(std::string_view source) const { return line_of(source, text(source)); }
  /// The first line that has `part`.
  Value line(std::string_view source, std::string_view part) const {
    return line_of(source, line_with(text(source), part));
  }
  /// What stands behind the colon of the first line that has `wanted`: "26.2" of "ProductVersion: 26.2".
  Value field(std::string_view source, std::string_view wanted) const {
    const std::string_view whole = line_with(text(source), wanted);
    const size_t colon = std::min(whole.find(':'), whole.size());
    return {this, std::string(source), trimmed(whole.substr(std::min(colon + 1, whole.size()))), whole};
  }
  Value file(std::string_view path) const;
  const Netdev* netdev(std::string_view wanted) const {
    return first_of(netdevs, [&](const Netdev& one) { return one.name == wanted; });
  }
  const Device* device(std::string_view wanted) const {
    return first_of(devices, [&](const Device& one) { return one.name == wanted; });
  }
  /// The device whose interface it is.
  const Device* device_on(std::string_view netdev) const {
    return first_of(devices, [&](const Device& one) { return one.netdev == netdev; });
  }
  bool has_ip(const cluster::IpAddress& ip) const {
    return std::ranges::any_of(netdevs, [&](const Netdev& one) { return one.has_ip(ip); });
  }
  /// A card, whose memory must be pinned; software devices pin none.
  bool has_card() const {
    return std::ranges::any_of(devices, [](const Device& one) { return !one.pci.empty(); });
  }
  /// The files whose paths begin so.
  Range files_below(std::string_view folder) const;
};

/// A cable between two machines that were read.
struct Link {
  enum class Origin { planned, seen, subnet };
  const Netdev* a = nullptr;
  const Netdev* b = nullptr;
  Origin origin = Origin::subnet;
  bool is_shaped = false;  ///< the plan wants a rate

  bool has(const Netdev& end) const { return a == &end || b == &end; }
  const Netdev& other(const Netdev& end) const { return a == &end ? *b : *a; }
};

/// Somebody who answered on an interface.
struct Sighting {
  const Netdev* at = nullptr;
  std::string address;
  const Netdev* who = nullptr;  ///< null: of no machine that was read
  std::string line;
};

struct Facts {
  Recording recording;
  Host whole{kNoHost, &recording};  ///< of no machine: the plan, and what `ringbolt` itself knows
  std::vector<Host> hosts = {};
  std::vector<Link> links = {};
  std::vector<Sighting> sightings = {};
  std::optional<cluster::Cluster> plan = {};
  bool is_emulated = false;      ///< the nodes share a machine's memory: there are no interfaces between them
  std::string plan_source = {};  ///< of the reading that the plan is from
  std::vector<const Address*> ipv4_addresses = {};
  /// What checks go over: machines, ports that are cabled, devices, cables.
  std::tuple<std::vector<const Host*>, std::vector<const Netdev*>, std::vector<const Device*>, std::vector<const Link*>>
      judged = {};

  /// The cable that ends there; null if none does.
  const Link* link_at(const Netdev& end) const {
    return first_of(links, [&](const Link& one) { return one.has(end); });
  }
  /// The host that plays a node of the plan; null if it was not read.
  const Host* host_of_node(uint32_t node) const;
};

/// The result is never copied or moved: its parts point into it. Views of texts live as long as it. Thread-safe to
/// read.
std::unique_ptr<const Facts> facts_of(Recording recording);

// Parts of it, each in a file of its own.
void read_linux(Host& host);
void read_mac(Host& host);
void find_links(Facts& facts);

}  // namespace ringbolt::tools::doctor
