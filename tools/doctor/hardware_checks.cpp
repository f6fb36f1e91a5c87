// Cards of the ConnectX kind, and how they sit in the machine.
#include <algorithm>

#include <fmt/format.h>

#include "doctor/check.h"

namespace ringbolt::tools::doctor {
namespace {

/// "0000:01:00.0 0x020000 0x15b3 0x1021 infiniband/mlx5_0"; an unresolved "infiniband/*" is none.
void missing_drivers(Probe& probe) {
  probe.each_host([&](const Host& host) {
    for (const std::string_view line : lines_of(host.text("pci"))) {
      const auto words = words_of(line);
      if (words.size() < 4 || !(words[1].starts_with("0x0200") || words[1].starts_with("0x0207"))) {
        continue;
      }
      probe.looked();
      if (words.size() < 5 || words[4].ends_with('*')) {
        probe.found(host, std::string(words[0]), "a card for RDMA has no RDMA device")
            .seen(host, "pci", line)
            .step(host, "modprobe mlx5_ib", "modprobe -r mlx5_ib")
            .advise("if that does not help, install the kernel's modules for it (linux-modules-extra, rdma-core)");
      }
    }
  });
}

void ports_down(Probe& probe) {
  probe.each_device([&](const Host& host, const Device& device) {
    const Netdev* netdev = host.netdev(device.netdev);
    const bool is_wanted = probe.facts.is_emulated || (netdev != nullptr && netdev->has_carrier.value_or(false) &&
                                                       netdev->is_up.value_or(false) && netdev->ipv4() != nullptr);
    if (device.state.empty() || !is_wanted || contains(device.link_layer, "InfiniBand")) {
      return;
    }
    probe.looked();
    if (!device.is_active()) {
      Finding& found = probe.found(host, device.name, fmt::format("the port is {}", device.state));
      host.is_mac ? found.seen(host, "ibv_devinfo -v", "state: " + device.state)
                  : found.file(host, device.folder + "/state");
      found.advise(probe.facts.is_emulated ? "look with `ringbolt status` which cable is cut"
                                           : "switch the interface off and on: ip link set IF down; ip link set IF up");
    }
  });
}

void no_subnet_manager(Probe& probe) {
  probe.each_device([&](const Host& host, const Device& device) {
    if (!contains(device.link_layer, "InfiniBand")) {
      return;
    }
    probe.looked();
    if (contains(device.state, "INIT")) {
      probe.found(host, device.name, "an InfiniBand port waits for a subnet manager")
          .file(host, device.folder + "/state")
          .step(host, "systemctl start opensm", "systemctl stop opensm")
          .advise(
              "on one of the machines: apt install opensm; or make the port Ethernet: mlxconfig set LINK_TYPE_P1=2");
    }
  });
}

/// What the card and its slot agreed on, against what both could.
void compare_pcie(Probe& probe, const char* file, const char* what) {
  probe.each_cabled([&](const Host& host, const Netdev& netdev) {
    const std::string folder = fmt::format("/sys/class/net/{}/device/", netdev.name);
    const std::string now = fmt::format("{}current_link_{}", folder, file);
    const std::string most = fmt::format("{}max_link_{}", folder, file);
    if (host.number(now) == 0 || host.number(most) == 0) {
      return;
    }
    probe.looked();
    if (host.number(now) < host.number(most)) {
      probe
          .found(host, netdev.name,
                 fmt::format("its PCIe {} is {}, and could be {}", what, trimmed(host.file(now)),
                             trimmed(host.file(most))))
          .file(host, now)
          .file(host, most)
          .advise(
              "seat the card anew or take another slot; on a Spark update the firmware and switch it off at the plug");
    }
  });
}

void narrow_pcie(Probe& probe) { compare_pcie(probe, "width", "width"); }
void slow_pcie(Probe& probe) { compare_pcie(probe, "speed", "speed"); }

/// Of devices of one type, everywhere.
void differing_firmware(Probe& probe) {
  std::map<std::string, std::pair<const Host*, const Device*>> first;
  std::vector<std::string> told;
  probe.each_device([&](const Host& host, const Device& device) {
    if (device.firmware.empty() || device.pci.empty()) {
      return;
    }
    const auto [one, is_new] = first.try_emplace(device.type, &host, &device);
    if (is_new || one->second.first == &host) {
      return;
    }
    probe.looked();
    if (one->second.second->firmware != device.firmware && std::ranges::find(told, host.name) == told.end()) {
      told.push_back(host.name);
      const auto& [other_host, other] = one->second;
      probe
          .found(host, device.name,
                 fmt::format("firmware {} here, {} on {}", device.firmware, other->firmware, other_host->name))
          .seen(host, fmt::format("/sys/class/infiniband/{}/fw_ver", device.name), device.firmware)
          .seen(*other_host, fmt::format("/sys/class/infiniband/{}/fw_ver", other->name), other->firmware)
          .advise("update the older one with the vendor's tool, then switch the machine off and on");
    }
  });
}

/// A Spark shows each cage as two functions, one on each half of its PCIe: enp1s0f0np0 and enP2p1s0f0np0.
void idle_twins(Probe& probe) {
  probe.each_host([&](const Host& host) {
    for (const Netdev& one : host.netdevs) {
      if (!one.name.starts_with("enp") || one.driver != "mlx5_core") {
        continue;
      }
      const Netdev* twin = host.netdev("enP2" + one.name.substr(2));
      if (twin == nullptr || !one.has_carrier.value_or(false) || !twin->has_carrier.value_or(false)) {
        continue;
      }
      probe.looked();
      const bool has_one = one.ipv4() != nullptr;
      if (has_one != (twin->ipv4() != nullptr)) {
        const Netdev& idle = has_one ? *twin : one;
        const Netdev& busy = has_one ? one : *twin;
        probe.found(host, idle.name, fmt::format("it has no address, and {}, of the same cage, has one", busy.name))
            .seen(host, "ip -o address", busy.ipv4()->line)
            .seen(host, "ip -o address", fmt::format("{}: no inet line", idle.name))
            .advise("give both an address, each in a subnet of its own, and name both devices to NCCL");
      }
    }
  });
}

/// "RX:		on"
void missing_pause(Probe& probe) {
  probe.each_cabled([&](const Host& host, const Netdev& netdev) {
    const std::string source = "ethtool -a " + netdev.name;
    const std::string_view text = host.text(source);
    if (text.empty()) {
      return;
    }
    probe.looked();
    for (const char* way : {"RX:", "TX:"}) {
      const std::string_view line = line_with(text, way);
      if (contains(line, "off")) {
        probe.found(host, netdev.name, "it sends or heeds no pause frames")
            .seen(host, source, line)
            .step(host, fmt::format("ethtool -A {} rx on tx on", netdev.name),
                  fmt::format("ethtool -A {} {} off", netdev.name, std::string_view(way) == "RX:" ? "rx" : "tx"));
        return;
      }
    }
  });
}

void saving_power(Probe& probe) {
  const std::string path = "/sys/module/pcie_aspm/parameters/policy";
  probe.each_host([&](const Host& host) {
    const bool has_card = std::ranges::any_of(host.devices, [](const Device& one) { return !one.pci.empty(); });
    if (host.file(path).empty() || !has_card) {
      return;
    }
    probe.looked();
    if (contains(host.file(path), "[powersave]") || contains(host.file(path), "[powersupersave]")) {
      probe.found(host, "PCIe", "its links sleep between messages")
          .file(host, path)
          .step(host, "echo performance > " + path, "echo powersave > " + path);
    }
  });
}

constexpr Check kHardwareChecks[] = {
    {"driver-missing", Severity::error, Platform::linux, "a card is there, its RDMA device is not",
     "programs find no device, and engines fall back to TCP without a word", "pci", missing_drivers},
    {"rdma-port-down", Severity::error, Platform::all, "an RDMA port is not active though its interface is",
     "queue pairs can't be connected", "devices|ibv_devinfo -v", ports_down},
    {"subnet-manager-missing", Severity::error, Platform::linux, "an InfiniBand port stays in INIT",
     "without a subnet manager it has no address, and Ethernet's settings do nothing to it", "devices",
     no_subnet_manager},
    {"pcie-narrow", Severity::warning, Platform::linux, "a card uses fewer PCIe lanes than it has",
     "at x2 it moves 13 Gb/s of its 200, with clean counters", "interfaces", narrow_pcie},
    {"pcie-slow", Severity::warning, Platform::linux, "a card's PCIe link runs below its generation",
     "the card is then the bottleneck, not the cable", "interfaces", slow_pcie},
    {"firmware-differs", Severity::warning, Platform::linux, "cards of one kind have different firmware",
     "what works between two machines fails between others", "devices", differing_firmware},
    {"twin-idle", Severity::warning, Platform::linux, "only one of a Spark's two functions of a cage has an address",
     "one function stops at about half of what the cable carries", "ip -o address", idle_twins},
    {"pause-off", Severity::note, Platform::linux, "a port neither sends nor heeds pause frames",
     "a burst then loses packets, and RoCE sends much again", "", missing_pause},
    {"pcie-sleeps", Severity::note, Platform::linux, "PCIe links save power",
     "small messages wait for links to wake up", "system", saving_power},
};

}  // namespace

std::span<const Check> hardware_checks() { return kHardwareChecks; }

}  // namespace ringbolt::tools::doctor
