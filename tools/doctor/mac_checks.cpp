// Macs, as far as their own tools tell. From TN3205 and what people report: no Mac was looked at.
#include <algorithm>

#include "doctor/check.h"

namespace ringbolt::tools::doctor {
namespace {

constexpr const char* kProfiler = "system_profiler SPThunderboltDataType";

bool has_thunderbolt_5(const Host& host) {
  const std::string_view text = host.text(kProfiler);
  return contains(text, "80 Gb/s") || contains(text, "120 Gb/s");
}

constexpr Check kMacChecks[] = {
    {"mac-system-old", kError, kMac, "macOS is older than 26.2", "there is no RDMA over Thunderbolt", "sw_vers",
     [](Probe& at, const Host& host) {
       const Value version = host.field("sw_vers", "ProductVersion");
       at.given(version)
           .judge(is_older(version.text, 26, 2), {host, "macOS"},
                  "macOS {} has no RDMA over Thunderbolt: it begins with 26.2", version.text)
           .advise("update macOS; until then MLX's ring backend goes over TCP");
     }},
    {"mac-ports-old", kError, kMac, "the ports are of Thunderbolt 4 or older",
     "RDMA needs Thunderbolt 5; programs crash where they take a device for granted", kProfiler,
     [](Probe& at, const Host& host) {
       at.given(host.line(kProfiler, "Gb/s"))
           .judge(!has_thunderbolt_5(host), {host, "Thunderbolt"},
                  "its ports are of Thunderbolt 4 or older: there is no RDMA on them")
           .advise("nothing mends this: use sockets, MLX's ring backend or `ringbolt up --hosts`");
     }},
    {"mac-rdma-off", kError, kMac, "RDMA over Thunderbolt is switched off",
     "there are no devices, or they stay down, here and at the peers", "rdma_ctl status",
     [](Probe& at, const Host& host) {
       const Value status = host.value("rdma_ctl status");
       at.given(status)
           .judge(contains(status.text, "disabled"), {host, "rdma_ctl"}, "RDMA over Thunderbolt is switched off")
           .advise("start the Mac in recovery (hold the power button), open Terminal there: rdma_ctl enable");
     }},
    {"mac-no-device", kError, kMac, "ibv_devinfo lists no device", "JACCL has nothing to open", "ibv_devinfo -v",
     [](Probe& at, const Host& host) {
       at.given(host.value("ibv_devinfo -v"), has_thunderbolt_5(host))
           .judge(host.devices.empty(), {host, "ibv_devinfo"}, "it lists no device, and the Mac has Thunderbolt 5")
           .advise("rdma_ctl enable in recovery; macOS 26.2 or later");
     }},
    {"mac-no-active-port", kError, kMac, "no RDMA port is active", "JACCL can't connect a queue pair", "ibv_devinfo -v",
     [](Probe& at, const Host& host) {
       if (!host.devices.empty()) {
         const Device& first = host.devices.front();
         at.judge(std::ranges::none_of(host.devices, &Device::is_active), first, "none of its RDMA ports is active")
             .seen("ibv_devinfo -v", fmt::format("{}: state: {}", first.name, first.state))
             .advise("look at the cable, and whether the Mac at its other end is on and has RDMA enabled");
       }
     }},
    {"mac-systems-differ", kWarning, kMac, "the Macs run different builds of macOS",
     "RDMA between different builds fails in ways that nothing tells of", "sw_vers",
     [](Probe& at) {
       judge_alike(
           at, "macOS", [](const Host& host) { return host.field("sw_vers", "BuildVersion"); },
           "update all of them to one build");
     }},
    {"mac-gid-index", kError, kMac, "the IPv4 GID is not at index 1",
     "JACCL takes index 1 without looking: its change to RTR fails with EINVAL", "ibv_devinfo -v",
     [](Probe& at, const Device& device) {
       const Gid* gid = device.ipv4_gid();
       if (gid == nullptr) {
         return;
       }
       const Judgement told =
           at.judge(gid->index != 1, device, "its IPv4 GID is at index {}, JACCL takes 1", gid->index)
               .gid(device, *gid);
       const Netdev* port = device.host->netdev(device.netdev);
       if (const Address* address = port == nullptr ? nullptr : port->ipv4()) {
         const std::string again = fmt::format("ifconfig {0} inet {1} delete && ifconfig {0} inet {2}", port->name,
                                               address->ip.text(), address->ip.text_with_prefix());
         told.step("{0}", "{0}", again);
       }
     }},
    {"mac-sleeps", kWarning, kMac, "the Mac goes to sleep", "all peers lose its queue pairs at once", "pmset -g",
     [](Probe& at, const Host& host) {
       for (const std::string_view line : lines_of(host.text("pmset -g"))) {
         const std::string_view minutes = word_after(line, "sleep");  // " sleep    1 (sleep prevented by ...)"
         at.given(host.line_of("pmset -g", line), word_at(line, 0) == "sleep" && !minutes.empty())
             .judge(number_of(minutes) != 0, {host, "sleep"}, "the Mac sleeps after {} minutes without a user", minutes)
             .step("pmset -a sleep 0", "pmset -a sleep {}", number_of(minutes));
       }
     }},
    {"mac-firewall-blocks", kError, kMac, "the firewall blocks all incoming connections",
     "ranks meet over TCP before they use RDMA, and can't", "socketfilterfw --getblockall",
     [](Probe& at, const Host& host) {
       const Value state = host.value("socketfilterfw --getblockall");
       const bool is_on = contains(state.text, "enabled") && !contains(state.text, "disabled");
       at.given(state)
           .judge(is_on, {host, "firewall"}, "it blocks all incoming connections")
           .step("{} off", "{} on", "/usr/libexec/ApplicationFirewall/socketfilterfw --setblockall");
     }},
};

}  // namespace

std::span<const Check> mac_checks() { return kMacChecks; }

}  // namespace ringbolt::tools::doctor
