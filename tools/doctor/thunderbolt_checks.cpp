// Thunderbolt and USB4 between Linux machines, as the bus shows it in sysfs.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "doctor/check.h"

namespace ringbolt::tools::doctor {
namespace {

constexpr const char* kDevices = "/sys/bus/thunderbolt/devices/";

/// Calls `look` with the folder of each machine that is cabled to this one: an XDomain.
template <class Look>
void each_peer(const Host& host, Look look) {
  const std::string_view all = kDevices;
  for (auto one = host.files.lower_bound(all); one != host.files.end() && one->first.starts_with(all); ++one) {
    if (one->first.ends_with("/uevent") && contains(one->second, "DEVTYPE=thunderbolt_xdomain")) {
      look(one->first.substr(0, one->first.size() - std::string_view("/uevent").size()));
    }
  }
}

bool has_peer(const Host& host) {
  bool found = false;
  each_peer(host, [&](const std::string&) { found = true; });
  return found;
}

bool has_module(const Host& host, std::string_view name) {
  const auto lines = lines_of(host.text("modules"));
  return std::ranges::find(lines, name) != lines.end();
}

void missing_network(Probe& probe) {
  probe.each_host([&](const Host& host) {
    if (!has_peer(host) || host.text("modules").empty()) {
      return;
    }
    probe.looked();
    const bool is_carried =
        has_module(host, "thunderbolt_net") || has_module(host, "thunderbolt_stream") ||
        std::ranges::any_of(host.netdevs, [](const Netdev& one) { return one.driver.starts_with("thunderbolt"); });
    if (!is_carried) {
      Finding& found =
          probe.found(host, "thunderbolt", "a machine is cabled to it, and no driver carries anything there");
      each_peer(host, [&](const std::string& folder) { found.file(host, folder + "/device_name"); });
      found.step(host, "modprobe thunderbolt-net", "modprobe -r thunderbolt-net");
    }
  });
}

/// "20.0 Gb/s" a lane, and how many lanes.
void narrow_lanes(Probe& probe) {
  probe.each_host([&](const Host& host) {
    each_peer(host, [&](const std::string& folder) {
      if (host.file(folder + "/rx_lanes").empty()) {
        return;
      }
      probe.looked();
      if (host.number(folder + "/rx_lanes") == 1) {
        probe.found(host, folder.substr(folder.rfind('/') + 1), "one of the two lanes of the cable is in use")
            .file(host, folder + "/rx_lanes")
            .file(host, folder + "/rx_speed")
            .advise("turn the plug over or take another certified cable; then look again");
      }
    });
  });
}

void slow_lanes(Probe& probe) {
  constexpr uint64_t kUsb4Gbps = 20;
  probe.each_host([&](const Host& host) {
    each_peer(host, [&](const std::string& folder) {
      const uint64_t gbps = host.number(folder + "/rx_speed");
      if (gbps == 0) {
        return;
      }
      probe.looked();
      if (gbps < kUsb4Gbps) {
        probe
            .found(host, folder.substr(folder.rfind('/') + 1),
                   fmt::format("a lane runs at {} Gb/s; USB4 and Thunderbolt have {}", gbps, kUsb4Gbps))
            .file(host, folder + "/rx_speed")
            .advise("take a shorter certified cable: a passive one of more than 0.8 m runs at half the speed");
      }
    });
  });
}

/// What a domain says of who may read the machine's memory.
void no_dma_protection(Probe& probe) {
  probe.each_host([&](const Host& host) {
    const std::string_view all = kDevices;
    for (auto one = host.files.lower_bound(all); one != host.files.end() && one->first.starts_with(all); ++one) {
      if (!one->first.ends_with("/iommu_dma_protection")) {
        continue;
      }
      probe.looked();
      if (trimmed(one->second) == "0" && has_peer(host)) {
        const std::string folder = one->first.substr(0, one->first.rfind('/'));
        probe.found(host, folder.substr(folder.rfind('/') + 1), "whoever is plugged in may read this machine's memory")
            .file(host, one->first)
            .file(host, folder + "/security")
            .advise("switch the IOMMU on in the firmware's setup (VT-d, AMD-Vi), or plug in only what you trust");
      }
    }
  });
}

/// "6.8.0-50-generic": 6.14 is where the native verbs driver begins.
void old_kernel(Probe& probe) {
  constexpr uint64_t kMajor = 6;
  constexpr uint64_t kMinor = 14;
  probe.each_host([&](const Host& host) {
    const auto words = words_of(host.text("uname -srm"));
    if (!has_peer(host) || words.size() < 2) {
      return;
    }
    probe.looked();
    const std::string_view release = words[1];
    const uint64_t major = number_of(release);
    const uint64_t minor = number_of(release.substr(std::min(release.find('.'), release.size() - 1) + 1));
    if (major < kMajor || (major == kMajor && minor < kMinor)) {
      probe.found(host, "kernel", fmt::format("Linux {} has no native verbs over USB4: these begin with 6.14", release))
          .seen(host, "uname -srm", host.text("uname -srm"))
          .advise("a newer kernel, or `ringbolt up --hosts`, which goes over thunderbolt-net");
    }
  });
}

void ring_in_use(Probe& probe) {
  probe.each_host([&](const Host& host) {
    if (host.text("modules").empty() || !has_peer(host)) {
      return;
    }
    probe.looked();
    if (has_module(host, "thunderbolt_net") && has_module(host, "thunderbolt_ibverbs")) {
      probe
          .found(host, "thunderbolt_net",
                 "it and the native verbs driver both want the controller's one flow-controlled ring")
          .seen(host, "modules", "thunderbolt_net")
          .seen(host, "modules", "thunderbolt_ibverbs")
          .step(host, "modprobe -r thunderbolt-net", "modprobe thunderbolt-net");
    }
  });
}

constexpr Check kThunderboltChecks[] = {
    {"thunderbolt-carries-nothing", Severity::error, Platform::linux,
     "a machine is cabled, and no driver uses the cable", "there is no interface, no device and no stream",
     "modules, thunderbolt", missing_network},
    {"thunderbolt-one-lane", Severity::warning, Platform::linux, "a cable uses one of its two lanes", "it carries half",
     "thunderbolt", narrow_lanes},
    {"thunderbolt-slow-lane", Severity::warning, Platform::linux, "a lane runs below USB4's 20 Gb/s",
     "the cable carries half or less", "thunderbolt", slow_lanes},
    {"thunderbolt-ring-taken", Severity::warning, Platform::linux, "thunderbolt_net holds what native verbs need",
     "a controller with one such ring (Strix Halo) wedges", "modules, thunderbolt", ring_in_use},
    {"thunderbolt-open-memory", Severity::warning, Platform::linux, "no IOMMU protects memory from what is plugged in",
     "the machine at the other end can read and write all of it", "thunderbolt", no_dma_protection},
    {"thunderbolt-kernel-old", Severity::note, Platform::linux, "the kernel is older than native verbs over USB4",
     "only the slower way over thunderbolt-net is left", "uname -srm, thunderbolt", old_kernel},
};

}  // namespace

std::span<const Check> thunderbolt_checks() { return kThunderboltChecks; }

}  // namespace ringbolt::tools::doctor
