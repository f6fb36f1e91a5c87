// The GID tables of RDMA ports, and who pins an index of them.
#include <algorithm>
#include <map>

#include "doctor/check.h"
#include "node_environment.h"

namespace ringbolt::tools::doctor {
namespace {

/// The device is meant to be used: its interface has an address, or it is a node's of a cluster.
bool is_used(const Facts& facts, const Device& device) {
  const Netdev* port = device.host->netdev(device.netdev);
  return facts.is_emulated || (port != nullptr && port->ipv4() != nullptr);
}

/// A port of RoCE, where GIDs are addresses.
bool is_used_roce(const Facts& facts, const Device& device) {
  return !device.is_infiniband() && is_used(facts, device);
}

void stale_gid(Probe& at, const Device& device) {
  const Gid* gid = device.ipv4_gid();
  const Netdev* port = device.host->netdev(device.netdev);
  const bool is_hardware = !device.pci.empty() || device.host->is_mac;
  if (gid != nullptr && port != nullptr && port->ipv4() != nullptr && !at.facts.is_emulated && is_hardware) {
    at.judge(!port->has_ip(*gid->ip), device, "its GID is {}, and {} has {}", gid->ip->text(), port->name,
             port->ipv4()->ip.text())
        .gid(device, *gid)
        .seen(port->ipv4()->value())
        .advise("switch the interface off and on; programs that run keep the old one");
  }
}

/// Of all devices of one kind, the index that most of them have is the right one.
void differing_indices(Probe& at) {
  auto devices = at.all<Device>();
  std::erase_if(devices, [&](const Device* one) { return one->ipv4_gid() == nullptr || !is_used(at.facts, *one); });
  std::map<uint32_t, uint32_t> counts;
  for (const Device* one : devices) {
    ++counts[one->ipv4_gid()->index];
  }
  const auto usual = std::ranges::max_element(counts, {}, [](const auto& one) { return one.second; });
  for (const Device* device : devices) {
    const uint32_t index = device->ipv4_gid()->index;
    const Judgement told =
        at.judge(index != usual->first, *device, "its IPv4 GID is at index {}, elsewhere at {}", index, usual->first)
            .advise(
                "pin no index: unset NCCL_IB_GID_INDEX and its like, so that each end looks for "
                "itself; or take the address away that has moved it");
    for (const Gid& before : device->gids) {
      if (before.index <= index) {
        told.gid(*device, before);
      }
    }
  }
}

/// A variable that pins an index of all devices of a machine. Told once for each machine.
void wrong_pins(Probe& at, const Host& host, const char* name) {
  const std::string_view value = host.variable(name);
  for (const Device& device : host.devices) {
    if (value.empty() || !is_digits(value) || device.ipv4_gid() == nullptr || !is_used_roce(at.facts, device)) {
      continue;
    }
    const auto gid = std::ranges::find(device.gids, number_of(value), &Gid::index);
    const bool has_one = gid != device.gids.end();
    const Judgement told = at.judge(!at.has_found(host) && (!has_one || !gid->is_ipv4_v2()), {host, name},
                                    "it is {}, and that entry of {} is {}; IPv4 and RoCE v2 is {}", value, device.name,
                                    !has_one       ? "empty"
                                    : gid->is_v2() ? "link-local"
                                                   : "of RoCE v1",
                                    device.ipv4_gid()->index)
                               .unset();
    if (has_one) {
      told.gid(device, *gid);
    }
    told.gid(device, *device.ipv4_gid());
  }
}

constexpr Check kGidChecks[] = {
    {"gid-table-empty", kError, kAll, "a port's GID table is empty", "the change to RTR fails with ENODATA or EINVAL",
     kDeviceSources,
     [](Probe& at, const Device& device) {
       at.given(is_used_roce(at.facts, device))
           .judge(device.gids.empty(), device, "its GID table is empty")
           .seen(device.host->is_mac ? "ibv_devinfo -v" : device.folder + "/gids", "no entry")
           .advise("switch the interface off and on; in a container, let the device be in its network namespace");
     }},
    {"gid-missing", kError, kAll, "no GID of a port is an IPv4 address of RoCE v2",
     "peers look for one, and take a link-local one or none", kDeviceSources,
     [](Probe& at, const Device& device) {
       const Judgement told = at.given(is_used_roce(at.facts, device) && !device.gids.empty())
                                  .judge(device.ipv4_gid() == nullptr, device, "no RoCE v2 GID is an IPv4 address");
       for (const Gid& gid : device.gids) {
         told.gid(device, gid);
       }
       if (device.host->netdev(device.netdev) != nullptr && !device.host->is_mac) {
         told.step("ip link set {0} down && ip link set {0} up", "", device.netdev)
             .advise("the kernel fills the table again when the interface comes up");
       }
     }},
    {"gid-stale", kError, kAll, "a GID is an address that the interface does not have any more",
     "the peer answers to nobody", kDeviceSources, stale_gid},
    {"gid-pinned-wrong", kError, kAll, "a variable pins a GID index that is empty, link-local or RoCE v1",
     "connecting fails on this machine alone, or hangs", kDeviceSources,
     [](Probe& at, const Host& host) {
       for (const char* name :
            {"NCCL_IB_GID_INDEX", "UCX_IB_GID_INDEX", "MC_GID_INDEX", "GGML_RDMA_GID", "NVSHMEM_IB_GID_INDEX"}) {
         wrong_pins(at, host, name);
       }
     }},
    {"gid-index-differs", kWarning, kAll, "the IPv4 GID is not at the same index everywhere",
     "an index that is pinned for all fails on some, and moves after a reboot", kDeviceSources, differing_indices},
    {"rdma-cm-version-1", kWarning, kLinux, "rdma_cm connects by RoCE v1",
     "v1 passes no router, and peers that speak v2 don't answer", "devices",
     [](Probe& at, const Host& host) {
       const std::string_view folder = "/sys/kernel/config/rdma_cm/";
       for (const auto& [path, text] : host.files_below(folder)) {
         at.judge(contains(text, "v1"),
                  {host, path.substr(folder.size(), path.find('/', folder.size()) - folder.size())},
                  "rdma_cm connects by RoCE v1")
             .seen(host.file(path))
             .step("echo 'RoCE v2' > {0}", "echo 'IB/RoCE v1' > {0}", shell_quoted(path));
       }
     }},
};

}  // namespace

std::span<const Check> gid_checks() { return kGidChecks; }

}  // namespace ringbolt::tools::doctor
