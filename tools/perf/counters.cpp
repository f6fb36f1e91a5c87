#include "perf/counters.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "cluster/read_file.h"

namespace ringbolt::tools::perf {
namespace {

std::optional<uint64_t> read_bytes(const std::string& path) {
  constexpr uint64_t kWordBytes = 4;
  try {
    const std::string text = cluster::read_file(path, 8192);
    uint64_t words = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), words);
    return error == std::errc{} && end != text.data() ? std::optional(words * kWordBytes) : std::nullopt;
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

std::string counters_root() {
  const char* root = std::getenv("RINGBOLT_SYSROOT");
  return root == nullptr ? "" : root;
}

}  // namespace ringbolt::tools::perf
