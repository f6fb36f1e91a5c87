// Cards of the ConnectX kind, and how they sit in the machine.
#include <algorithm>

#include "doctor/check.h"

namespace ringbolt::tools::doctor {
namespace {

/// What the card and its slot agreed on, against what both could.
void judge_pcie(Probe& at, const Netdev& port, const char* what) {
  const Value now = port.file(fmt::format("device/current_link_{}", what));
  const Value most = port.file(fmt::format("device/max_link_{}", what));
  at.given(now, now.number() != 0 && most.number() != 0)
      .judge(now.number() < most.number(), port, "its PCIe {} is {}, and could be {}", what, now.text, most.text)
      .seen(most)
      .advise("seat the card anew or take another slot; on a Spark update the firmware and switch it off at the plug");
}

/// Of devices of one type, everywhere; told once for each machine.
void differing_firmware(Probe& at) {
  std::map<std::string_view, const Device*> firsts;
  for (const Device* device : at.all<Device>()) {
    if (device->firmware.empty() || device->pci.empty()) {
      continue;
    }
    const Device& first = *firsts.try_emplace(device->type, device).first->second;
    const auto version = [](const Device& one) {
      return one.host->file(fmt::format("/sys/class/infiniband/{}/fw_ver", one.name));
    };
    at.given(version(*device), first.host != device->host)
        .judge(first.firmware != device->firmware && !at.has_found(*device->host), *device,
               "firmware {} here, {} on {}", device->firmware, first.firmware, first.host->name)
        .seen(version(first))
        .advise("update the older one with the vendor's tool, then switch the machine off and on");
  }
}

constexpr Check kHardwareChecks[] = {
    {"driver-missing", kError, kLinux, "a card is there, its RDMA device is not",
     "programs find no device, and engines fall back to TCP without a word", "pci",
     [](Probe& at, const Host& host) {
       // "0000:01:00.0 0x020000 0x15b3 0x1021 infiniband/mlx5_0"; an unresolved "infiniband/*" is none.
       for (const std::string_view line : lines_of(host.text("pci"))) {
         const std::string_view kind = word_at(line, 1);
         const std::string_view device = word_at(line, 4);
         const bool is_card = kind.starts_with("0x0200") || kind.starts_with("0x0207");
         at.given(host.line_of("pci", line), is_card && !word_at(line, 3).empty())
             .judge(device.empty() || device.ends_with('*'), {host, std::string(word_at(line, 0))},
                    "a card for RDMA has no RDMA device")
             .step("modprobe mlx5_ib", "modprobe -r mlx5_ib")
             .advise("if that does not help, install the kernel's modules for it (linux-modules-extra, rdma-core)");
       }
     }},
    {"rdma-port-down", kError, kAll, "an RDMA port is not active though its interface is",
     "queue pairs can't be connected", kDeviceSources,
     [](Probe& at, const Device& device) {
       const Netdev* port = device.host->netdev(device.netdev);
       const bool is_up = port != nullptr && port->has_carrier.value_or(false) && port->is_up.value_or(false);
       const bool is_wanted = at.facts.is_emulated || (is_up && port->ipv4() != nullptr);
       at.given(!device.state.empty() && is_wanted && !device.is_infiniband())
           .judge(!device.is_active(), device, "the port is {}", device.state)
           .seen(device.host->is_mac ? device.host->line_of("ibv_devinfo -v", "state: " + device.state)
                                     : device.file("state"))
           .advise("{}", at.facts.is_emulated
                             ? "look with `ringbolt status` which cable is cut"
                             : "switch the interface off and on: ip link set IF down; ip link set IF up");
     }},
    {"subnet-manager-missing", kError, kLinux, "an InfiniBand port stays in INIT",
     "without a subnet manager it has no address, and Ethernet's settings do nothing to it", "devices",
     [](Probe& at, const Device& device) {
       at.given(device.is_infiniband())
           .judge(contains(device.state, "INIT"), device, "an InfiniBand port waits for a subnet manager")
           .seen(device.file("state"))
           .step("systemctl start opensm", "systemctl stop opensm")
           .advise(
               "on one of the machines: apt install opensm; or make the port Ethernet: mlxconfig set LINK_TYPE_P1=2");
     }},
    {"pcie-narrow", kWarning, kLinux, "a card uses fewer PCIe lanes than it has",
     "at x2 it moves 13 Gb/s of its 200, with clean counters", "interfaces",
     [](Probe& at, const Netdev& port) { judge_pcie(at, port, "width"); }},
    {"pcie-slow", kWarning, kLinux, "a card's PCIe link runs below its generation",
     "the card is then the bottleneck, not the cable", "interfaces",
     [](Probe& at, const Netdev& port) { judge_pcie(at, port, "speed"); }},
    {"firmware-differs", kWarning, kLinux, "cards of one kind have different firmware",
     "what works between two machines fails between others", "devices", differing_firmware},
    {"twin-idle", kWarning, kLinux, "only one of a Spark's two functions of a cage has an address",
     "one function stops at about half of what the cable carries", "ip -o address",
     [](Probe& at, const Host& host) {
       // One on each half of its PCIe: enp1s0f0np0 and enP2p1s0f0np0.
       for (const Netdev& one : host.netdevs) {
         const Netdev* twin = one.name.starts_with("enp") ? host.netdev("enP2" + one.name.substr(2)) : nullptr;
         if (twin == nullptr || one.driver != "mlx5_core" || !one.has_carrier.value_or(false) ||
             !twin->has_carrier.value_or(false)) {
           continue;
         }
         const Netdev& busy = one.ipv4() != nullptr ? one : *twin;
         const Netdev& idle = &busy == &one ? *twin : one;
         at.judge((one.ipv4() == nullptr) != (twin->ipv4() == nullptr), idle,
                  "it has no address, and {}, of the same cage, has one", busy.name)
             .seen("ip -o address", busy.ipv4() == nullptr ? "" : busy.ipv4()->line)
             .seen("ip -o address", fmt::format("{}: no inet line", idle.name))
             .advise("give both an address, each in a subnet of its own, and name both devices to NCCL");
       }
     }},
    {"pause-off", kNote, kLinux, "a port neither sends nor heeds pause frames",
     "a burst then loses packets, and RoCE sends much again", "",
     [](Probe& at, const Netdev& port) {
       const Value all = port.host->value("ethtool -a " + port.name);
       const std::string_view rx = line_with(all.text, "RX:");  // "RX:		on"
       const std::string_view off = contains(rx, "off") ? rx : line_with(all.text, "TX:");
       at.given(!!all)
           .judge(contains(off, "off"), port, "it sends or heeds no pause frames")
           .seen(all.source, off)
           .step("ethtool -A {0} rx on tx on", "ethtool -A {0} {1} off", port.name, off == rx ? "rx" : "tx");
     }},
    {"pcie-sleeps", kNote, kLinux, "PCIe links save power", "small messages wait for links to wake up", "system",
     [](Probe& at, const Host& host) {
       const Value policy = host.file("/sys/module/pcie_aspm/parameters/policy");
       at.given(policy, host.has_card())
           .judge(contains(policy.text, "[powersave]") || contains(policy.text, "[powersupersave]"), {host, "PCIe"},
                  "its links sleep between messages")
           .step("echo performance > {}", "echo powersave > {}", policy.source);
     }},
};

}  // namespace

std::span<const Check> hardware_checks() { return kHardwareChecks; }

}  // namespace ringbolt::tools::doctor
