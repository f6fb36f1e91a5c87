// Macs, as far as their own tools tell. From TN3205 and what people report: no Mac was looked at.
#include <algorithm>

#include <fmt/format.h>

#include "doctor/check.h"

namespace ringbolt::tools::doctor {
namespace {

constexpr const char* kProfiler = "system_profiler SPThunderboltDataType";

std::string_view value_in(std::string_view text, std::string_view key) {
  const std::string_view line = line_with(text, key);
  return trimmed(line.substr(std::min(line.find(':') + 1, line.size())));
}

bool has_thunderbolt_5(const Host& host) {
  const std::string_view text = host.text(kProfiler);
  return contains(text, "80 Gb/s") || contains(text, "120 Gb/s");
}

void old_system(Probe& probe) {
  constexpr uint64_t kMajor = 26;
  constexpr uint64_t kMinor = 2;
  probe.each_host([&](const Host& host) {
    const std::string_view version = value_in(host.text("sw_vers"), "ProductVersion");
    if (version.empty()) {
      return;
    }
    probe.looked();
    const uint64_t major = number_of(version);
    const size_t dot = version.find('.');
    const uint64_t minor = dot == std::string_view::npos ? 0 : number_of(version.substr(dot + 1));
    if (major < kMajor || (major == kMajor && minor < kMinor)) {
      probe.found(host, "macOS", fmt::format("macOS {} has no RDMA over Thunderbolt: it begins with 26.2", version))
          .seen(host, "sw_vers", line_with(host.text("sw_vers"), "ProductVersion"))
          .advise("update macOS; until then MLX's ring backend goes over TCP");
    }
  });
}

void old_ports(Probe& probe) {
  probe.each_host([&](const Host& host) {
    const std::string_view text = host.text(kProfiler);
    if (!contains(text, "Gb/s")) {
      return;
    }
    probe.looked();
    if (!has_thunderbolt_5(host)) {
      probe.found(host, "Thunderbolt", "its ports are of Thunderbolt 4 or older: there is no RDMA on them")
          .seen(host, kProfiler, line_with(text, "Gb/s"))
          .advise("nothing mends this: use sockets, MLX's ring backend or `ringbolt up --hosts`");
    }
  });
}

void disabled(Probe& probe) {
  probe.each_host([&](const Host& host) {
    const std::string_view text = host.text("rdma_ctl status");
    if (text.empty()) {
      return;
    }
    probe.looked();
    if (contains(text, "disabled")) {
      probe.found(host, "rdma_ctl", "RDMA over Thunderbolt is switched off")
          .seen(host, "rdma_ctl status", text)
          .advise("start the Mac in recovery (hold the power button), open Terminal there: rdma_ctl enable");
    }
  });
}

void no_devices(Probe& probe) {
  probe.each_host([&](const Host& host) {
    if (!has_thunderbolt_5(host) || host.recording->find(host.name, "ibv_devinfo -v") == nullptr) {
      return;
    }
    probe.looked();
    if (host.devices.empty() && !host.text("ibv_devinfo -v").empty()) {
      probe.found(host, "ibv_devinfo", "it lists no device, and the Mac has Thunderbolt 5")
          .seen(host, "ibv_devinfo -v", host.text("ibv_devinfo -v"))
          .advise("rdma_ctl enable in recovery; macOS 26.2 or later");
    }
  });
}

void no_active_port(Probe& probe) {
  probe.each_host([&](const Host& host) {
    if (host.devices.empty()) {
      return;
    }
    probe.looked();
    if (std::ranges::none_of(host.devices, [](const Device& one) { return one.is_active(); })) {
      probe.found(host, host.devices.front().name, "none of its RDMA ports is active")
          .seen(host, "ibv_devinfo -v",
                fmt::format("{}: state: {}", host.devices.front().name, host.devices.front().state))
          .advise("look at the cable, and whether the Mac at its other end is on and has RDMA enabled");
    }
  });
}

void differing_systems(Probe& probe) {
  const Host* first = nullptr;
  probe.each_host([&](const Host& host) {
    const std::string_view build = value_in(host.text("sw_vers"), "BuildVersion");
    if (build.empty()) {
      return;
    }
    if (first == nullptr) {
      first = &host;
      return;
    }
    probe.looked();
    const std::string_view other = value_in(first->text("sw_vers"), "BuildVersion");
    if (build != other) {
      probe.found(host, "macOS", fmt::format("build {} here, {} on {}", build, other, first->name))
          .seen(host, "sw_vers", line_with(host.text("sw_vers"), "BuildVersion"))
          .seen(*first, "sw_vers", line_with(first->text("sw_vers"), "BuildVersion"))
          .advise("update all of them to one build");
    }
  });
}

/// JACCL takes index 1 without looking.
void other_gid_index(Probe& probe) {
  probe.each_device([&](const Host& host, const Device& device) {
    const Gid* gid = device.ipv4_gid();
    if (gid == nullptr) {
      return;
    }
    probe.looked();
    if (gid->index != 1) {
      const Netdev* netdev = host.netdev(device.netdev);
      Finding& found =
          probe.found(host, device.name, fmt::format("its IPv4 GID is at index {}, JACCL takes 1", gid->index))
              .seen(host, "ibv_devinfo -v", fmt::format("{}: GID[{}]: {}", device.name, gid->index, gid->text));
      if (const Address* address = netdev == nullptr ? nullptr : netdev->ipv4()) {
        const std::string mend = fmt::format("ifconfig {0} inet {1} delete && ifconfig {0} inet {2}", netdev->name,
                                             address->ip.text(), address->ip.text_with_prefix());
        found.step(host, mend, mend);
      }
    }
  });
}

/// " sleep                1 (sleep prevented by ...)"
void sleeping(Probe& probe) {
  probe.each_host([&](const Host& host) {
    for (const std::string_view line : lines_of(host.text("pmset -g"))) {
      const auto words = words_of(line);
      if (words.size() >= 2 && words[0] == "sleep") {
        probe.looked();
        if (number_of(words[1]) != 0) {
          probe.found(host, "sleep", fmt::format("the Mac sleeps after {} minutes without a user", words[1]))
              .seen(host, "pmset -g", line)
              .step(host, "pmset -a sleep 0", fmt::format("pmset -a sleep {}", number_of(words[1])));
        }
      }
    }
  });
}

void blocking_firewall(Probe& probe) {
  const char* source = "socketfilterfw --getblockall";
  probe.each_host([&](const Host& host) {
    const std::string_view text = host.text(source);
    if (text.empty()) {
      return;
    }
    probe.looked();
    const bool is_off = contains(text, "disabled");
    if (!is_off && contains(text, "enabled")) {
      const char* program = "/usr/libexec/ApplicationFirewall/socketfilterfw --setblockall";
      probe.found(host, "firewall", "it blocks all incoming connections")
          .seen(host, source, text)
          .step(host, fmt::format("{} off", program), fmt::format("{} on", program));
    }
  });
}

constexpr Check kMacChecks[] = {
    {"mac-system-old", Severity::error, Platform::mac, "macOS is older than 26.2", "there is no RDMA over Thunderbolt",
     "sw_vers", old_system},
    {"mac-ports-old", Severity::error, Platform::mac, "the ports are of Thunderbolt 4 or older",
     "RDMA needs Thunderbolt 5; programs crash where they take a device for granted", kProfiler, old_ports},
    {"mac-rdma-off", Severity::error, Platform::mac, "RDMA over Thunderbolt is switched off",
     "there are no devices, or they stay down, here and at the peers", "rdma_ctl status", disabled},
    {"mac-no-device", Severity::error, Platform::mac, "ibv_devinfo lists no device", "JACCL has nothing to open",
     "ibv_devinfo -v", no_devices},
    {"mac-no-active-port", Severity::error, Platform::mac, "no RDMA port is active", "JACCL can't connect a queue pair",
     "ibv_devinfo -v", no_active_port},
    {"mac-systems-differ", Severity::warning, Platform::mac, "the Macs run different builds of macOS",
     "RDMA between different builds fails in ways that nothing tells of", "sw_vers", differing_systems},
    {"mac-gid-index", Severity::error, Platform::mac, "the IPv4 GID is not at index 1",
     "JACCL takes index 1 without looking: its change to RTR fails with EINVAL", "ibv_devinfo -v", other_gid_index},
    {"mac-sleeps", Severity::warning, Platform::mac, "the Mac goes to sleep", "all peers lose its queue pairs at once",
     "pmset -g", sleeping},
    {"mac-firewall-blocks", Severity::error, Platform::mac, "the firewall blocks all incoming connections",
     "ranks meet over TCP before they use RDMA, and can't", "socketfilterfw --getblockall", blocking_firewall},
};

}  // namespace

std::span<const Check> mac_checks() { return kMacChecks; }

}  // namespace ringbolt::tools::doctor
