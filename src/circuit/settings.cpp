#include "circuit/settings.h"

#include <limits.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <functional>

#include <fmt/format.h>

#include "cluster/runtime_dir.h"
#include "membership/addresses.h"

namespace ringbolt::circuit {
namespace {

/// FNV-1a, 64 bits: only equality counts.
uint64_t number_of(uint64_t machine, const std::string& words) {
  uint64_t number = machine ^ 14695981039346656037U;
  for (const char c : words) {
    number = (number ^ static_cast<uint8_t>(c)) * 1099511628211U;
  }
  return number;
}

/// Of a variable that says how many: `to` stays as it is where it is not understood, with a remark.
template <class T>
void take_number(const std::function<std::string(const char*)>& value_of, const char* name, const char* unit, T least,
                 T most, T& to, std::vector<std::string>& remarks) {
  const std::string text = value_of(name);
  T number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (!text.empty() && error == std::errc() && end == text.data() + text.size() && number >= least && number <= most) {
    to = number;
  } else if (!text.empty()) {
    remarks.push_back(
        fmt::format("{} is \"{}\": it must be {}, {} to {}; taking {}", name, text, unit, least, most, to));
  }
}

/// Of base/variables.cpp: shorter messages are copied faster than anybody is told of their receives.
constexpr uint64_t kLeastDirectBytes = 4096;
constexpr uint64_t kMostDirectBytes = uint64_t{1} << 40U;

}  // namespace

Settings settings_from(const bootstrap::Environment& environment, const bootstrap::ReadFile& read, uint64_t machine,
                       const std::string& host, int pid) {
  const auto value_of = [&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string() : found->second;
  };
  Settings settings;
  EndpointPlan& plan = settings.plan;
  if (const std::string verbs = value_of("RINGBOLT_VERBS"); !verbs.empty()) {
    plan.verbs = verbs;
  }
  const std::string cluster = value_of("RINGBOLT_CLUSTER");
  const std::string node = value_of("RINGBOLT_NODE");
  // Emulated nodes of one machine are different nodes; processes of one node have the same number without a word
  // between them.
  plan.node = number_of(machine, cluster + "/" + node);
  plan.name = fmt::format("{} (pid {})", node.empty() ? host : "n" + node, pid);
  plan.group = value_of("RINGBOLT_GROUP").substr(0, bootstrap::kMaxGroupNameBytes);
  plan.secret = value_of("RINGBOLT_SECRET");
  if (const std::string file = value_of("RINGBOLT_SECRET_FILE"); plan.secret.empty() && !file.empty()) {
    // A secret in the environment goes before one in a file.
    plan.secret = read(file, true);
  }
  plan.has_checksums = value_of("RINGBOLT_CRC") == "every";
  take_number<uint32_t>(value_of, "RINGBOLT_FROZEN_MS", "milliseconds", 1000, 3'600'000, plan.most_silent_ms,
                        settings.remarks);
  take_number<uint64_t>(value_of, "RINGBOLT_NCCL_DIRECT_BYTES", "bytes", kLeastDirectBytes, kMostDirectBytes,
                        plan.least_written_bytes, settings.remarks);
  if (const std::string way = value_of("RINGBOLT_NCCL_WAY"); way == "direct" || way == "frames") {
    plan.way = way == "direct" ? Way::direct : Way::frames;
  } else if (!way.empty() && way != "auto") {
    settings.remarks.push_back(
        fmt::format("RINGBOLT_NCCL_WAY is \"{}\": it must be auto, direct or frames; taking auto", way));
  }
  return settings;
}

Settings settings_from_process() {
  std::array<char, HOST_NAME_MAX + 1> host{};
  (void)::gethostname(host.data(), host.size() - 1);
  const bootstrap::Environment environment = bootstrap::environment_of_process();
  Settings settings =
      settings_from(environment, bootstrap::read_file, membership::machine_number(), host.data(), ::getpid());
  if (const auto cluster = environment.find("RINGBOLT_CLUSTER");
      cluster != environment.end() && !cluster->second.empty()) {
    // Where members of an emulated cluster find each other (membership::Discovery).
    settings.plan.folder = cluster::RuntimeDir::from_environment().cluster(cluster->second) + "/members";
  }
  return settings;
}

}  // namespace ringbolt::circuit
