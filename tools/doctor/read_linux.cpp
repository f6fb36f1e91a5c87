// What look.sh has read of a Linux machine: sysfs and the outputs of iproute2.
#include <algorithm>
#include <set>

#include "cluster/names.h"
#include "doctor/facts.h"

namespace ringbolt::tools::doctor {
namespace {

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('/') + 1); }

/// The last part of what a link leads to; "" if it is none.
std::string_view target_of(const Host& host, const std::string& path) {
  const auto found = host.links.find(path);
  return found == host.links.end() ? "" : last_part(found->second);
}

/// "0000:01:00.0"
std::string pci_at(const Host& host, const std::string& path) {
  const std::string_view name = target_of(host, path);
  return std::ranges::count(name, ':') == 2 ? std::string(name) : "";
}

/// The names below `folder` that files were read of.
std::set<std::string> names_below(const Host& host, std::string_view folder) {
  std::set<std::string> names;
  for (const auto& [path, text] : host.files_below(folder)) {
    const std::string_view rest = std::string_view(path).substr(folder.size());
    names.emplace(rest.substr(0, rest.find('/')));
  }
  return names;
}

Netdev netdev_of(const Host& host, const std::string& name) {
  const std::string folder = "/sys/class/net/" + name;
  Netdev found{name, &host};
  found.mtu = host.file(folder + "/mtu").number();
  const uint64_t speed = host.file(folder + "/speed").number();
  found.speed_mbps = speed >= UINT32_MAX ? 0 : speed;  // "-1": a port without a cable
  if (const Value flags = host.file(folder + "/flags")) {
    found.is_up = flags.number() % 2 == 1;  // IFF_UP
  }
  if (const Value carrier = host.file(folder + "/carrier")) {
    found.has_carrier = carrier.text == "1";
  }
  if (const std::string master(target_of(host, folder + "/master")); cluster::is_netdev_name(master)) {
    found.master = master;
  }
  found.driver = target_of(host, folder + "/device/driver");
  found.pci = pci_at(host, folder + "/device");
  return found;
}

/// Null if there is none of that name.
Netdev* netdev_in(Host& host, std::string_view name) {
  const auto found = std::ranges::find(host.netdevs, name, &Netdev::name);
  return found == host.netdevs.end() ? nullptr : &*found;
}

/// "2: en2    inet 10.77.0.1/24 brd ... scope global en2"
void add_addresses(Host& host) {
  for (const std::string_view line : lines_of(host.text("ip -o address"))) {
    Netdev* netdev = netdev_in(host, word_at(line, 1));
    const auto ip = cluster::IpAddress::parse(word_at(line, 3));
    if (netdev != nullptr && ip && word_at(line, 2).starts_with("inet")) {
      netdev->addresses.push_back(
          {*ip, std::string(trimmed(line.substr(0, line.find('\\')))), contains(line, "dadfailed")});
    }
  }
}

void add_routes(Host& host) {
  for (const char* source : {"ip route", "ip -6 route"}) {
    for (const std::string_view line : lines_of(host.text(source))) {
      Netdev* netdev = netdev_in(host, word_after(line, "dev"));
      if (netdev != nullptr && word_at(line, 0) == "default") {
        netdev->has_default_route = true;
      }
    }
  }
}

/// "2500Mbit", "1Gbit", "800Kbit"; less than a megabit counts as one.
uint64_t mbps_of(std::string_view rate) {
  const uint64_t number = number_of(rate);
  const uint64_t scaled = contains(rate, "Gbit") ? number * 1000 : contains(rate, "Mbit") ? number : number / 1000;
  return number == 0 ? 0 : std::max<uint64_t>(scaled, 1);
}

/// "qdisc tbf 8001: dev en2 root refcnt 5 rate 1Gbit burst ..."
void add_shapers(Host& host) {
  for (const std::string_view line : lines_of(host.text("tc qdisc show"))) {
    Netdev* netdev = netdev_in(host, word_after(line, "dev"));
    const std::string_view rate = word_after(line, "rate");
    if (netdev != nullptr && !rate.empty()) {
      netdev->shaped_mbps = mbps_of(rate);
      netdev->shaped_line = line;
    }
  }
}

void add_gids(const Host& host, Device& device) {
  for (const std::string& index : names_below(host, device.folder + "/gids/")) {
    const std::string text(host.file(device.folder + "/gids/" + index).text);
    if (!is_digits(index) || index.size() > 5 || text.empty()) {
      continue;
    }
    Gid& gid = device.gids.emplace_back(Gid{static_cast<uint32_t>(number_of(index)), text});
    gid.type = host.file(device.folder + "/gid_attrs/types/" + index).text;
    gid.netdev = host.file(device.folder + "/gid_attrs/ndevs/" + index).text;
    gid.ip = ip_of_gid(text);
  }
  std::ranges::sort(device.gids, {}, &Gid::index);
}

/// The interface of a device: as its GIDs say, or else as its folder says.
std::string netdev_of(const Host& host, const Device& device, const std::string& below) {
  const std::string first = device.gids.empty() ? "" : device.gids.front().netdev;
  const auto link = host.links.lower_bound(below);
  const bool has_link = link != host.links.end() && link->first.starts_with(below);
  return first.empty() && has_link ? link->second : first;
}

/// A device of several ports is several: their GIDs and interfaces differ.
void add_devices(Host& host) {
  const std::string all = "/sys/class/infiniband/";
  for (const std::string& name : names_below(host, all)) {
    const std::string folder = all + name;
    for (const std::string& port : names_below(host, folder + "/ports/")) {
      if (!cluster::is_device_name(name)) {
        continue;
      }
      Device& device = host.devices.emplace_back(Device{name, &host});
      device.folder = folder + "/ports/" + port;
      device.state = host.file(device.folder + "/state").text;
      device.link_layer = host.file(device.folder + "/link_layer").text;
      device.firmware = host.file(folder + "/fw_ver").text;
      device.type = host.file(folder + "/hca_type").text;
      device.pci = pci_at(host, folder + "/device");
      add_gids(host, device);
      device.netdev = netdev_of(host, device, folder + "/device/net/");
    }
  }
}

}  // namespace

void read_linux(Host& host) {
  for (const std::string& name : names_below(host, "/sys/class/net/")) {
    if (cluster::is_netdev_name(name)) {  // others would need quoting in commands
      host.netdevs.push_back(netdev_of(host, name));
    }
  }
  add_addresses(host);
  add_routes(host);
  add_shapers(host);
  add_devices(host);
}

}  // namespace ringbolt::tools::doctor
