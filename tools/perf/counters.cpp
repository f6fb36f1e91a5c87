#include "perf/counters.h"

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "cluster/counter_page.h"
#include "cluster/read_file.h"
#include "cluster/runtime_dir.h"
#include "pair/end_facts.h"

namespace ringbolt::tools::perf {
namespace {

// Octets divided by 4: Documentation/ABI/stable/sysfs-class-infiniband of the kernel. Our counter page does the same.
constexpr uint64_t kWordBytes = 4;

uint32_t node_number(const std::string& node) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(node.data(), node.data() + node.size(), number);
  if (error != std::errc{} || end != node.data() + node.size()) {
    throw base::Error(EINVAL, "read the node number", "RINGBOLT_NODE=" + node, "give a number from 0");
  }
  return number;
}

/// As the device's Port chooses it.
std::string own_file(const std::string& device) {
  const auto dir = cluster::RuntimeDir::from_environment();
  const char* name = std::getenv("RINGBOLT_CLUSTER");
  const char* node = std::getenv("RINGBOLT_NODE");
  if (name != nullptr && node != nullptr) {
    return dir.counter_file(name, node_number(node), device);
  }
  const std::string folder = std::getenv("RINGBOLT_NETDEVS") != nullptr   ? dir.make_network_slots()
                             : std::getenv("RINGBOLT_STREAMS") != nullptr ? dir.default_slots()
                                                                          : dir.default_dir();
  return folder + "/" + device + cluster::RuntimeDir::kCounterSuffix;
}

std::optional<uint64_t> read_bytes(const std::string& path) {
  try {
    // More than such a file ever has: one number.
    const std::string text = cluster::read_file(path, 8192);
    uint64_t words = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), words);
    return error == std::errc{} && end != text.data() ? std::optional(words * kWordBytes) : std::nullopt;
  } catch (const base::Error&) {
    return std::nullopt;
  }
}

std::optional<PortCounters> read_own_counters(const std::string& device) {
  try {
    const auto sum = cluster::read_counters(own_file(device));
    if (!sum) {
      return std::nullopt;
    }
    const auto bytes = [&](const char* name) {
      return ringbolt_counter_value(ringbolt_find_counter("counters", name), &*sum) * kWordBytes;
    };
    return PortCounters{bytes("port_xmit_data"), bytes("port_rcv_data")};
  } catch (const base::Error&) {
    return std::nullopt;
  }
}

}  // namespace

std::optional<PortCounters> read_port_counters(const std::string& root, const std::string& device, unsigned port) {
  const std::string folder = fmt::format("{}/sys/class/infiniband/{}/ports/{}/counters", root, device, port);
  const std::optional<uint64_t> transmitted = read_bytes(folder + "/port_xmit_data");
  const std::optional<uint64_t> received = read_bytes(folder + "/port_rcv_data");
  if (!transmitted || !received) {
    return std::nullopt;
  }
  return PortCounters{*transmitted, *received};
}

std::optional<PortCounters> counters_of(const std::string& device, unsigned port, const std::string& library) {
  const char* root = std::getenv("RINGBOLT_SYSROOT");
  const std::optional<PortCounters> shown = read_port_counters(root == nullptr ? "" : root, device, port);
  return shown || !pair::is_ringbolts(library) ? shown : read_own_counters(device);
}

}  // namespace ringbolt::tools::perf
