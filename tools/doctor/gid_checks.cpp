// The GID tables of RDMA ports, and who pins an index of them.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "doctor/check.h"
#include "node_environment.h"

namespace ringbolt::tools::doctor {
namespace {

std::string gid_path(const Device& device, uint32_t index) { return fmt::format("{}/gids/{}", device.folder, index); }

Finding& gid_seen(Finding& found, const Host& host, const Device& device, const Gid& gid) {
  return host.is_mac
             ? found.seen(host, "ibv_devinfo -v", fmt::format("{}: GID[{}]: {}", device.name, gid.index, gid.text))
             : found.seen(host, gid_path(device, gid.index), fmt::format("{} {}", gid.text, gid.type));
}

bool is_roce(const Device& device) { return !contains(device.link_layer, "InfiniBand"); }

/// The device is meant to be used: its interface has an address, or it is a node's of a cluster.
bool is_used(const Facts& facts, const Host& host, const Device& device) {
  const Netdev* netdev = host.netdev(device.netdev);
  return facts.is_emulated || (netdev != nullptr && netdev->ipv4() != nullptr);
}

void empty_tables(Probe& probe) {
  probe.each_device([&](const Host& host, const Device& device) {
    if (!is_roce(device) || !is_used(probe.facts, host, device)) {
      return;
    }
    probe.looked();
    if (device.gids.empty()) {
      probe.found(host, device.name, "its GID table is empty")
          .seen(host, host.is_mac ? "ibv_devinfo -v" : device.folder + "/gids", "no entry")
          .advise("switch the interface off and on; in a container, let the device be in its network namespace");
    }
  });
}

void missing_gids(Probe& probe) {
  probe.each_device([&](const Host& host, const Device& device) {
    if (!is_roce(device) || device.gids.empty() || !is_used(probe.facts, host, device)) {
      return;
    }
    probe.looked();
    if (device.ipv4_gid() == nullptr) {
      Finding& found = probe.found(host, device.name, "no RoCE v2 GID is an IPv4 address");
      for (const Gid& gid : device.gids) {
        gid_seen(found, host, device, gid);
      }
      if (const Netdev* netdev = host.netdev(device.netdev); netdev != nullptr && !host.is_mac) {
        found.step(host, fmt::format("ip link set {0} down && ip link set {0} up", netdev->name));
        found.advise("the kernel fills the table again when the interface comes up");
      }
    }
  });
}

void stale_gids(Probe& probe) {
  probe.each_device([&](const Host& host, const Device& device) {
    const Gid* gid = device.ipv4_gid();
    const Netdev* netdev = host.netdev(device.netdev);
    if (gid == nullptr || netdev == nullptr || netdev->ipv4() == nullptr || probe.facts.is_emulated ||
        (device.pci.empty() && !host.is_mac)) {
      return;
    }
    probe.looked();
    const bool is_there =
        std::ranges::any_of(netdev->addresses, [&](const Address& one) { return one.ip.bytes == gid->ip->bytes; });
    if (!is_there) {
      gid_seen(probe.found(host, device.name,
                           fmt::format("its GID is {}, and {} has {}", gid->ip->text(), netdev->name,
                                       netdev->ipv4()->ip.text())),
               host, device, *gid)
          .seen(host, host.is_mac ? "ifconfig -a" : "ip -o address", netdev->ipv4()->line)
          .advise("switch the interface off and on; programs that run keep the old one");
    }
  });
}

/// Of all devices of one kind, the index that most of them have is the right one.
void differing_indices(Probe& probe) {
  std::map<uint32_t, uint32_t> counts;
  probe.each_device([&](const Host& host, const Device& device) {
    if (device.ipv4_gid() != nullptr && is_used(probe.facts, host, device)) {
      ++counts[device.ipv4_gid()->index];
    }
  });
  const auto usual = std::ranges::max_element(counts, {}, [](const auto& one) { return one.second; });
  probe.each_device([&](const Host& host, const Device& device) {
    const Gid* gid = device.ipv4_gid();
    if (gid == nullptr || !is_used(probe.facts, host, device)) {
      return;
    }
    probe.looked();
    if (gid->index != usual->first) {
      Finding& found = probe.found(
          host, device.name, fmt::format("its IPv4 GID is at index {}, elsewhere at {}", gid->index, usual->first));
      for (const Gid& before : device.gids) {
        if (before.index <= gid->index) {
          gid_seen(found, host, device, before);
        }
      }
      found.advise(
          "pin no index: unset NCCL_IB_GID_INDEX and its like, so that each end looks for itself; or take the address "
          "away that has moved it");
    }
  });
}

/// Variables that pin an index of all devices of a machine.
void wrong_pins(Probe& probe) {
  constexpr const char* kPins[] = {"NCCL_IB_GID_INDEX", "UCX_IB_GID_INDEX", "MC_GID_INDEX", "GGML_RDMA_GID",
                                   "NVSHMEM_IB_GID_INDEX"};
  probe.each_host([&](const Host& host) {
    for (const char* name : kPins) {
      const std::string* value = host.variable(name);
      if (value == nullptr || value->find_first_not_of("0123456789") != std::string::npos) {
        continue;
      }
      for (const Device& device : host.devices) {
        if (!is_roce(device) || device.ipv4_gid() == nullptr || !is_used(probe.facts, host, device)) {
          continue;
        }
        probe.looked();
        const uint64_t index = number_of(*value);
        const auto gid = std::ranges::find_if(device.gids, [&](const Gid& one) { return one.index == index; });
        if (gid != device.gids.end() && gid->is_ipv4() && gid->is_v2()) {
          continue;
        }
        const std::string is = gid == device.gids.end() ? "empty" : gid->is_v2() ? "link-local" : "of RoCE v1";
        Finding& found = probe
                             .found(host, name,
                                    fmt::format("it is {}, and that entry of {} is {}; IPv4 and RoCE v2 is {}", *value,
                                                device.name, is, device.ipv4_gid()->index))
                             .seen(host, "environment", fmt::format("{}={}", name, *value));
        if (gid != device.gids.end()) {
          gid_seen(found, host, device, *gid);
        }
        gid_seen(found, host, device, *device.ipv4_gid())
            .step(host, fmt::format("unset {}", name), fmt::format("export {}={}", name, *value), By::shell);
        return;
      }
    }
  });
}

/// What rdma_cm takes by itself.
void version_1_default(Probe& probe) {
  probe.each_host([&](const Host& host) {
    const std::string_view folder = "/sys/kernel/config/rdma_cm/";
    for (auto one = host.files.lower_bound(folder); one != host.files.end() && one->first.starts_with(folder); ++one) {
      probe.looked();
      if (contains(one->second, "v1")) {
        const std::string name = one->first.substr(folder.size(), one->first.find('/', folder.size()) - folder.size());
        probe.found(host, name, "rdma_cm connects by RoCE v1")
            .file(host, one->first)
            .step(host, "echo 'RoCE v2' > " + shell_quoted(one->first),
                  "echo 'IB/RoCE v1' > " + shell_quoted(one->first));
      }
    }
  });
}

constexpr Check kGidChecks[] = {
    {"gid-table-empty", Severity::error, Platform::all, "a port's GID table is empty",
     "the change to RTR fails with ENODATA or EINVAL", "devices|ibv_devinfo -v", empty_tables},
    {"gid-missing", Severity::error, Platform::all, "no GID of a port is an IPv4 address of RoCE v2",
     "peers look for one, and take a link-local one or none", "devices|ibv_devinfo -v", missing_gids},
    {"gid-stale", Severity::error, Platform::all, "a GID is an address that the interface does not have any more",
     "the peer answers to nobody", "devices|ibv_devinfo -v", stale_gids},
    {"gid-pinned-wrong", Severity::error, Platform::all,
     "a variable pins a GID index that is empty, link-local or RoCE v1",
     "connecting fails on this machine alone, or hangs", "devices|ibv_devinfo -v", wrong_pins},
    {"gid-index-differs", Severity::warning, Platform::all, "the IPv4 GID is not at the same index everywhere",
     "an index that is pinned for all fails on some, and moves after a reboot", "devices|ibv_devinfo -v",
     differing_indices},
    {"rdma-cm-version-1", Severity::warning, Platform::linux, "rdma_cm connects by RoCE v1",
     "v1 passes no router, and peers that speak v2 don't answer", "devices", version_1_default},
};

}  // namespace

std::span<const Check> gid_checks() { return kGidChecks; }

}  // namespace ringbolt::tools::doctor
