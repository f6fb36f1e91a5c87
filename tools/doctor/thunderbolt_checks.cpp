// Thunderbolt and USB4 between Linux machines, as the bus shows it in sysfs.
#include <algorithm>

#include "doctor/check.h"

namespace ringbolt::tools::doctor {
namespace {

constexpr std::string_view kDevices = "/sys/bus/thunderbolt/devices/";

/// The folders below kDevices that have this file, with such a text in it.
std::vector<std::string> folders_with(const Host& host, std::string_view file, std::string_view part) {
  std::vector<std::string> folders;
  for (const auto& [path, text] : host.files_below(kDevices)) {
    if (path.ends_with(file) && contains(text, part)) {
      folders.push_back(path.substr(0, path.size() - file.size()));
    }
  }
  return folders;
}

/// Machines that are cabled to this one: XDomains.
std::vector<std::string> peers_of(const Host& host) {
  return folders_with(host, "/uevent", "DEVTYPE=thunderbolt_xdomain");
}

std::string last_part(const std::string& folder) { return folder.substr(folder.rfind('/') + 1); }

bool has_module(const Host& host, std::string_view name) {
  const auto lines = lines_of(host.text("modules"));
  return std::ranges::find(lines, name) != lines.end();
}

constexpr Check kThunderboltChecks[] = {
    {"thunderbolt-carries-nothing", kError, kLinux, "a machine is cabled, and no driver uses the cable",
     "there is no interface, no device and no stream", "modules, thunderbolt",
     [](Probe& at, const Host& host) {
       const auto peers = peers_of(host);
       const bool is_carried =
           has_module(host, "thunderbolt_net") || has_module(host, "thunderbolt_stream") ||
           std::ranges::any_of(host.netdevs, [](const Netdev& one) { return one.driver.starts_with("thunderbolt"); });
       const Judgement told = at.given(!peers.empty() && host.value("modules"))
                                  .judge(!is_carried, {host, "thunderbolt"},
                                         "a machine is cabled to it, and no driver carries anything there")
                                  .step("modprobe thunderbolt-net", "modprobe -r thunderbolt-net");
       for (const std::string& folder : peers) {
         told.seen(host.file(folder + "/device_name"));
       }
     }},
    {"thunderbolt-one-lane", kWarning, kLinux, "a cable uses one of its two lanes", "it carries half", "thunderbolt",
     [](Probe& at, const Host& host) {
       for (const std::string& folder : peers_of(host)) {
         const Value lanes = host.file(folder + "/rx_lanes");
         at.given(lanes)
             .judge(lanes.number() == 1, {host, last_part(folder)}, "one of the two lanes of the cable is in use")
             .seen(host.file(folder + "/rx_speed"))
             .advise("turn the plug over or take another certified cable; then look again");
       }
     }},
    {"thunderbolt-slow-lane", kWarning, kLinux, "a lane runs below USB4's 20 Gb/s", "the cable carries half or less",
     "thunderbolt",
     [](Probe& at, const Host& host) {
       constexpr uint64_t kUsb4Gbps = 20;
       for (const std::string& folder : peers_of(host)) {
         const Value speed = host.file(folder + "/rx_speed");  // "20.0 Gb/s", of a lane
         at.given(speed, speed.number() != 0)
             .judge(speed.number() < kUsb4Gbps, {host, last_part(folder)},
                    "a lane runs at {} Gb/s; USB4 and Thunderbolt have {}", speed.number(), kUsb4Gbps)
             .advise("take a shorter certified cable: a passive one of more than 0.8 m runs at half the speed");
       }
     }},
    {"thunderbolt-ring-taken", kWarning, kLinux, "thunderbolt_net holds what native verbs need",
     "a controller with one such ring (Strix Halo) wedges", "modules, thunderbolt",
     [](Probe& at, const Host& host) {
       at.given(host.value("modules") && !peers_of(host).empty())
           .judge(has_module(host, "thunderbolt_net") && has_module(host, "thunderbolt_ibverbs"),
                  {host, "thunderbolt_net"},
                  "it and the native verbs driver both want the controller's one flow-controlled ring")
           .seen("modules", "thunderbolt_net")
           .seen("modules", "thunderbolt_ibverbs")
           .step("modprobe -r thunderbolt-net", "modprobe thunderbolt-net");
     }},
    {"thunderbolt-open-memory", kWarning, kLinux, "no IOMMU protects memory from what is plugged in",
     "the machine at the other end can read and write all of it", "thunderbolt",
     [](Probe& at, const Host& host) {
       for (const std::string& folder : folders_with(host, "/iommu_dma_protection", "")) {  // domains
         const Value is_protected = host.file(folder + "/iommu_dma_protection");
         at.given(is_protected)
             .judge(is_protected.text == "0" && !peers_of(host).empty(), {host, last_part(folder)},
                    "whoever is plugged in may read this machine's memory")
             .seen(host.file(folder + "/security"))
             .advise("switch the IOMMU on in the firmware's setup (VT-d, AMD-Vi), or plug in only what you trust");
       }
     }},
    {"thunderbolt-kernel-old", kNote, kLinux, "the kernel is older than native verbs over USB4",
     "only the slower way over thunderbolt-net is left", "uname -srm, thunderbolt",
     [](Probe& at, const Host& host) {
       const Value system = host.value("uname -srm");
       const std::string_view release = word_at(system.text, 1);
       at.given(system, !release.empty() && !peers_of(host).empty())
           .judge(is_older(release, 6, 14), {host, "kernel"},
                  "Linux {} has no native verbs over USB4: these begin with 6.14", release)
           .advise("a newer kernel, or `ringbolt up --hosts`, which goes over thunderbolt-net");
     }},
};

}  // namespace

std::span<const Check> thunderbolt_checks() { return kThunderboltChecks; }

}  // namespace ringbolt::tools::doctor
