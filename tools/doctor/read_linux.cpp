// What look.sh has read of a Linux machine: sysfs and the outputs of iproute2.
#include <algorithm>
#include <set>

#include "cluster/names.h"
#include "doctor/facts.h"

namespace ringbolt::tools::doctor {
namespace {

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('/') + 1); }

/// "0000:01:00.0" at the end of a link.
std::string pci_at(const Host& host, const std::string& path) {
  const auto found = host.links.find(path);
  const std::string_view name = found == host.links.end() ? "" : last_part(found->second);
  return std::ranges::count(name, ':') == 2 ? std::string(name) : "";
}

/// The names below `folder` that files were read of.
std::set<std::string> names_below(const Host& host, std::string_view folder) {
  std::set<std::string> names;
  for (auto one = host.files.lower_bound(folder); one != host.files.end() && one->first.starts_with(folder); ++one) {
    const std::string_view rest = std::string_view(one->first).substr(folder.size());
    names.insert(std::string(rest.substr(0, rest.find('/'))));
  }
  return names;
}

Netdev netdev_of(const Host& host, const std::string& name) {
  const std::string folder = "/sys/class/net/" + name;
  Netdev found{name};
  const auto link = [&](const char* file) {
    const auto one = host.links.find(folder + file);
    return one == host.links.end() ? std::string() : std::string(last_part(one->second));
  };
  found.mac = trimmed(host.file(folder + "/address"));
  found.mtu = host.number(folder + "/mtu");
  const std::string_view speed = host.file(folder + "/speed");
  found.speed_mbps = speed.starts_with('-') || number_of(speed) >= UINT32_MAX ? 0 : number_of(speed);
  if (const std::string_view flags = host.file(folder + "/flags"); !flags.empty()) {
    found.is_up = number_of(flags) % 2 == 1;  // IFF_UP
  }
  if (const std::string_view carrier = host.file(folder + "/carrier"); !carrier.empty()) {
    found.has_carrier = trimmed(carrier) == "1";
  }
  if (const std::string master = link("/master"); cluster::is_netdev_name(master)) {
    found.master = master;
  }
  found.driver = link("/device/driver");
  found.pci = pci_at(host, folder + "/device");
  return found;
}

Netdev* netdev_in(Host& host, std::string_view name) {
  const auto found = std::ranges::find(host.netdevs, name, &Netdev::name);
  return found == host.netdevs.end() ? nullptr : &*found;
}

/// "2: en2    inet 10.77.0.1/24 brd ... scope global en2"
void add_addresses(Host& host) {
  for (const std::string_view line : lines_of(host.text("ip -o address"))) {
    const auto words = words_of(line);
    if (words.size() < 4 || !words[2].starts_with("inet")) {
      continue;
    }
    Netdev* netdev = netdev_in(host, words[1]);
    const auto ip = cluster::IpAddress::parse(words[3]);
    if (netdev != nullptr && ip) {
      netdev->addresses.push_back(
          {*ip, std::string(trimmed(line.substr(0, line.find('\\')))), contains(line, "dadfailed")});
    }
  }
}

void add_routes(Host& host) {
  for (const char* source : {"ip route", "ip -6 route"}) {
    for (const std::string_view line : lines_of(host.text(source))) {
      const auto words = words_of(line);
      const auto dev = std::ranges::find(words, "dev");
      if (words.size() >= 3 && words[0] == "default" && dev != words.end() && dev + 1 != words.end()) {
        if (Netdev* netdev = netdev_in(host, dev[1])) {
          netdev->has_default_route = true;
        }
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
    const auto words = words_of(line);
    const auto dev = std::ranges::find(words, "dev");
    const auto rate = std::ranges::find(words, "rate");
    if (dev == words.end() || dev + 1 == words.end() || rate == words.end() || rate + 1 == words.end()) {
      continue;
    }
    if (Netdev* netdev = netdev_in(host, dev[1])) {
      netdev->shaped_mbps = mbps_of(rate[1]);
      netdev->shaped_line = line;
    }
  }
}

void add_gids(const Host& host, Device& device) {
  for (const std::string& index : names_below(host, device.folder + "/gids/")) {
    const std::string text(trimmed(host.file(device.folder + "/gids/" + index)));
    if (index.find_first_not_of("0123456789") != std::string::npos || index.size() > 5 || text.empty()) {
      continue;
    }
    Gid gid{static_cast<uint32_t>(number_of(index)), text};
    gid.type = trimmed(host.file(device.folder + "/gid_attrs/types/" + index));
    gid.netdev = trimmed(host.file(device.folder + "/gid_attrs/ndevs/" + index));
    gid.ip = ip_of_gid(text);
    device.gids.push_back(std::move(gid));
  }
  std::ranges::sort(device.gids, {}, &Gid::index);
}

/// A device of several ports is several: their GIDs and interfaces differ.
void add_devices(Host& host) {
  const std::string all = "/sys/class/infiniband/";
  for (const std::string& name : names_below(host, all)) {
    for (const std::string& port : names_below(host, all + name + "/ports/")) {
      if (!cluster::is_device_name(name)) {
        continue;
      }
      Device device{name};
      device.folder = all + name + "/ports/" + port;
      device.state = trimmed(host.file(device.folder + "/state"));
      device.phys_state = trimmed(host.file(device.folder + "/phys_state"));
      device.link_layer = trimmed(host.file(device.folder + "/link_layer"));
      device.firmware = trimmed(host.file(all + name + "/fw_ver"));
      device.type = trimmed(host.file(all + name + "/hca_type"));
      device.pci = pci_at(host, all + name + "/device");
      add_gids(host, device);
      if (!device.gids.empty()) {
        device.netdev = device.gids.front().netdev;
      }
      const std::string below = all + name + "/device/net/";
      const auto link = host.links.lower_bound(below);
      if (device.netdev.empty() && link != host.links.end() && link->first.starts_with(below)) {
        device.netdev = link->second;
      }
      host.devices.push_back(std::move(device));
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
