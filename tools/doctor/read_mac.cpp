// What a Mac's own tools say: ifconfig for interfaces, ibv_devinfo for devices. From their documentation and what
// people have published; no Mac was looked at.
#include <algorithm>
#include <bit>

#include "cluster/names.h"
#include "doctor/facts.h"

namespace ringbolt::tools::doctor {
namespace {

/// "netmask 0xffffff00"
uint8_t prefix_of_mask(std::string_view mask) {
  return static_cast<uint8_t>(std::popcount(number_of(mask) & 0xffffffffU));
}

void add_address(Netdev& netdev, std::string_view line, const std::vector<std::string_view>& words) {
  const std::string_view text = words[1].substr(0, words[1].find('%'));
  auto ip = cluster::IpAddress::parse(text);
  if (!ip) {
    return;
  }
  for (size_t i = 2; i + 1 < words.size(); ++i) {
    if (words[i] == "netmask") {
      ip->prefix_bits = prefix_of_mask(words[i + 1]);
    } else if (words[i] == "prefixlen") {
      ip->prefix_bits = static_cast<uint8_t>(std::min<uint64_t>(number_of(words[i + 1]), 128));
    }
  }
  netdev.addresses.push_back({*ip, std::string(trimmed(line)), contains(line, "duplicated")});
}

/// "en2: flags=8863<UP,...> mtu 1500", and indented lines of that interface.
void add_interfaces(Host& host) {
  Netdev* now = nullptr;
  std::vector<std::pair<std::string, std::string>> members;  // interface, its bridge
  for (const std::string_view line : lines_of(host.text("ifconfig -a"))) {
    const auto words = words_of(line);
    if (words.empty()) {
      continue;
    }
    if (line.front() != ' ' && line.front() != '\t') {
      const std::string name(words[0].substr(0, words[0].find(':')));
      now = nullptr;
      if (cluster::is_netdev_name(name) && !name.starts_with("lo")) {
        now = &host.netdevs.emplace_back(Netdev{name, &host});
        now->is_up = contains(line, "<UP") || contains(line, ",UP,");
        now->mtu = number_of(word_after(line, "mtu"));
      }
    } else if (now != nullptr && words.size() >= 2) {
      if (words[0].starts_with("inet")) {
        add_address(*now, line, words);
      } else if (words[0] == "status:") {
        now->has_carrier = words[1] == "active";
      } else if (words[0] == "member:") {
        members.emplace_back(words[1], now->name);
      }
    }
  }
  for (const auto& [member, bridge] : members) {
    for (Netdev& one : host.netdevs) {
      one.master = one.name == member ? bridge : one.master;
    }
  }
}

/// "GID[  1]: ::ffff:10.0.0.1, RoCE v2". Of a Thunderbolt port there are no versions.
void add_gid(Device& device, std::string_view line) {
  const size_t colon = line.find("]:");
  const std::string_view text = colon == std::string_view::npos ? "" : word_at(line.substr(colon + 2), 0);
  const uint64_t index = number_of(line.substr(line.find('[') + 1));
  Gid gid{static_cast<uint32_t>(std::min<uint64_t>(index, 65535)), std::string(text.substr(0, text.find(',')))};
  gid.ip = ip_of_gid(gid.text);
  gid.type = "RoCE v2";
  gid.netdev = device.netdev;
  if (gid.ip) {
    device.gids.push_back(std::move(gid));
  }
}

/// "hca_id: rdma_en2", and below it "state: PORT_ACTIVE (4)" and GIDs.
void add_devices_of_mac(Host& host) {
  Device* now = nullptr;
  for (const std::string_view line : lines_of(host.text("ibv_devinfo -v"))) {
    const auto words = words_of(line);
    if (words.size() < 2) {
      continue;
    }
    if (words[0] == "hca_id:") {
      now = nullptr;
      if (cluster::is_device_name(words[1])) {
        now = &host.devices.emplace_back(Device{std::string(words[1]), &host});
        now->netdev = now->name.starts_with("rdma_") ? now->name.substr(5) : "";
      }
    } else if (now == nullptr) {
      continue;
    } else if (words[0] == "state:") {
      now->state = words[1];
    } else if (words[0] == "link_layer:") {
      now->link_layer = words[1];
    } else if (words[0] == "fw_ver:") {
      now->firmware = words[1];
    } else if (words[0].starts_with("GID[")) {
      add_gid(*now, line);
    }
  }
}

}  // namespace

void read_mac(Host& host) {
  add_interfaces(host);
  add_devices_of_mac(host);
}

}  // namespace ringbolt::tools::doctor
