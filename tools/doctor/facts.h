#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/ip_address.h"
#include "cluster/model.h"
#include "doctor/recording.h"

/// What a recording says, taken apart. All of it is pure, takes any bytes, and throws nothing: what can't be understood
/// is left out.
namespace ringbolt::tools::doctor {

/// A line that was read, and from where.
struct Evidence {
  std::string host;
  std::string source;
  std::string text;
  friend bool operator==(const Evidence&, const Evidence&) = default;
};

struct Address {
  cluster::IpAddress ip;
  std::string line;           ///< as it was read
  bool is_duplicate = false;  ///< the kernel found it elsewhere
};

struct Netdev {
  std::string name;
  std::string mac = {};
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
  const Address* ipv4() const;
};

struct Gid {
  uint32_t index = 0;
  std::string text;
  std::string type = {};  ///< "RoCE v2", "IB/RoCE v1"
  std::string netdev = {};
  std::optional<cluster::IpAddress> ip = {};  ///< of an IPv4-mapped one too

  bool is_ipv4() const { return ip && ip->is_ipv4(); }
  bool is_v2() const { return type.find("v2") != std::string::npos; }
};

struct Device {
  std::string name;
  std::string netdev = {};
  std::string pci = {};     ///< empty: a software device
  std::string folder = {};  ///< of its port in sysfs
  std::string state = {}, phys_state = {}, link_layer = {}, firmware = {}, type = {};
  std::vector<Gid> gids = {};

  bool is_active() const { return state.find("ACTIVE") != std::string::npos; }
  /// The lowest index of a RoCE v2 GID that is an IPv4 address; null if there is none.
  const Gid* ipv4_gid() const;
};

struct Host {
  std::string name;
  bool is_mac = false;
  const Recording* recording = nullptr;
  std::map<std::string, std::string, std::less<>> files = {};  ///< of all parts of look.sh that are PATH:LINE
  std::map<std::string, std::string, std::less<>> links = {};
  std::map<std::string, std::string, std::less<>> environment = {};
  std::vector<Netdev> netdevs = {};
  std::vector<Device> devices = {};

  /// "" if it was not read.
  std::string_view text(std::string_view source) const;
  std::string_view file(std::string_view path) const;
  const std::string* variable(std::string_view name) const;
  const Netdev* netdev(std::string_view name) const;
  const Device* device(std::string_view name) const;
  /// The device whose interface it is; null if there is none.
  const Device* device_on(std::string_view netdev) const;
  uint64_t number(std::string_view path) const;
};

/// An end of a cable, by indices into Facts::hosts and Host::netdevs.
struct End {
  size_t host = 0;
  size_t netdev = 0;
  friend bool operator==(const End&, const End&) = default;
};

/// A cable between two machines that were read.
struct Link {
  enum class Origin { planned, seen, subnet };
  End a, b;
  Origin origin = Origin::subnet;
  uint64_t speed_gbps = 0;  ///< that the plan says; 0: it says none
  bool is_shaped = false;   ///< the plan wants a rate
};

/// Somebody who answered on an interface.
struct Sighting {
  End at;
  std::string address;
  std::optional<End> who = {};  ///< none: no machine that was read
  std::string line;
};

struct Facts {
  Recording recording;
  std::vector<Host> hosts = {};
  std::vector<Link> links = {};
  std::vector<Sighting> sightings = {};
  std::optional<cluster::Cluster> plan = {};
  bool is_emulated = false;      ///< the nodes share a machine's memory: there are no interfaces between them
  std::string plan_source = {};  ///< of the reading that the plan is from

  const Host& host(const End& end) const { return hosts[end.host]; }
  const Netdev& netdev(const End& end) const { return hosts[end.host].netdevs[end.netdev]; }
  /// The host that plays a node of the plan; null if it was not read.
  const Host* host_of_node(uint32_t node) const;
};

/// `facts->hosts[i].recording` points into the result: it is never copied.
std::unique_ptr<const Facts> facts_of(Recording recording);

// Parts of it, each in a file of its own.
void read_linux(Host& host);
void read_mac(Host& host);
void find_links(Facts& facts);

// For all who take texts apart.
/// Of a GID, as sysfs or ibv_devinfo writes it; an IPv4-mapped one is IPv4, "::" is none.
std::optional<cluster::IpAddress> ip_of_gid(std::string_view text);
std::vector<std::string_view> lines_of(std::string_view text);
std::vector<std::string_view> words_of(std::string_view line);
/// The number that `text` begins with; 0 if there is none. A number too large is the greatest.
uint64_t number_of(std::string_view text);
std::string_view trimmed(std::string_view text);
/// Whether `text` has it, whatever the case of letters.
bool contains(std::string_view text, std::string_view part);
/// The first line that has it; "" if there is none.
std::string_view line_with(std::string_view text, std::string_view part);

}  // namespace ringbolt::tools::doctor
