#include <charconv>

#include <fmt/format.h>

#include "cluster/thunderbolt.h"

namespace ringbolt::cluster {
namespace {

// thunderbolt-stream came to the kernel with 7.2.
constexpr unsigned kFirstMajor = 7;
constexpr unsigned kFirstMinor = 2;  // the first kernel with the driver

/// "7.2.1" is; text that is no version is taken for one.
bool has_driver_version(const std::string& kernel) {
  unsigned major = 0;
  unsigned minor = 0;
  const char* const end = kernel.data() + kernel.size();
  const auto [dot, error] = std::from_chars(kernel.data(), end, major);
  if (error != std::errc{} || dot == end || *dot != '.' || std::from_chars(dot + 1, end, minor).ec != std::errc{}) {
    // A vendor's kernel with a name of its own: whether the driver is there is looked at next anyhow.
    return true;
  }
  return major != kFirstMajor ? major > kFirstMajor : minor >= kFirstMinor;
}

}  // namespace

bool offers_streams(const ThunderboltLook& look) {
  if (!look.strays.empty() || (look.has_driver && !look.peers.empty())) {
    return true;
  }
  for (const ThunderboltPeer& peer : look.peers) {
    if (!peer.streams.empty()) {
      return true;
    }
  }
  return false;
}

std::string why_no_streams(const HostThunderbolt& host) {
  const ThunderboltLook& look = host.look;
  // Each reason makes those after it pointless, so that only the first is told.
  if (!look.has_bus) {
    return fmt::format(
        "{}: there is no {}: no Thunderbolt or USB4 port, or its driver is not loaded; try modprobe "
        "thunderbolt there",
        host.host, look.devices);
  }
  if (!has_driver_version(look.kernel)) {
    return fmt::format("{}: its kernel is {}, and streams (/dev/tbstreamN) come with Linux {}.{}; install a newer one",
                       host.host, look.kernel, kFirstMajor, kFirstMinor);
  }
  if (!look.has_configfs) {
    return fmt::format(
        "{}: ConfigFS is not mounted, so that there is no {}; mount -t configfs none "
        "/sys/kernel/config there",
        host.host, look.configfs);
  }
  if (!look.has_driver) {
    return fmt::format("{}: there is no {}: the driver of streams is not loaded; modprobe thunderbolt-stream there",
                       host.host, look.configfs);
  }
  if (look.peers.empty()) {
    return fmt::format(
        "{}: {} shows no other machine; plug in a cable between two machines that are on, and give "
        "them some seconds",
        host.host, look.devices);
  }
  return "";
}

}  // namespace ringbolt::cluster
