#include "base/variables.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>

#include <fmt/format.h>

#include "base/nearest.h"
#include "base/printable.h"
#include "base/say.h"

extern char** environ;  // NOLINT: POSIX names it so

namespace ringbolt::base {
namespace {

constexpr std::string_view kPrefix = "RINGBOLT_";

// As in docs/environment.md, in the order of their names. Paths, names and lists take anything here, and are checked
// where they are used.
constexpr auto kVariables = std::to_array<OwnVariable>({
    {"RINGBOLT_ADDR_"},
    {"RINGBOLT_BIND"},
    {"RINGBOLT_CLUSTER"},
    {"RINGBOLT_COORDINATOR"},
    {"RINGBOLT_CRC", "on off every"},
    {"RINGBOLT_DEVICE_"},
    {"RINGBOLT_EXPLAIN"},
    {"RINGBOLT_FAULTS"},
    {"RINGBOLT_FROZEN_MS", "", 1000, 3'600'000},
    {"RINGBOLT_GROUP"},
    {"RINGBOLT_GROUP_PORT", "", 1, 65535},
    {"RINGBOLT_JOIN_TIMEOUT_MS", "", 1, 86'400'000},
    {"RINGBOLT_LIFELINES", "on off"},
    {"RINGBOLT_LIKE"},
    {"RINGBOLT_LOG", "quiet debug"},
    {"RINGBOLT_LOOPBACK", "memory network"},
    {"RINGBOLT_MEASURE", "on off"},
    {"RINGBOLT_MEETING_HOST"},
    {"RINGBOLT_NCCL_DIRECT_BYTES", "", 4096, uint64_t{1} << 40U},
    {"RINGBOLT_NCCL_TUNER", "off ring"},
    {"RINGBOLT_NCCL_WAY", "auto direct frames"},
    {"RINGBOLT_NETDEVS"},
    {"RINGBOLT_NODE"},
    {"RINGBOLT_NODES"},
    {"RINGBOLT_RANK", "", 0, 63},
    {"RINGBOLT_RECORD"},
    {"RINGBOLT_RUNTIME_DIR"},
    {"RINGBOLT_SANITIZE"},
    {"RINGBOLT_SANITIZE_JSON"},
    {"RINGBOLT_SANITIZE_LOG"},
    {"RINGBOLT_SANITIZE_SUPPRESSIONS"},
    {"RINGBOLT_SECRET"},
    {"RINGBOLT_SECRET_FILE"},
    {"RINGBOLT_SHUFFLE"},
    {"RINGBOLT_SKIP_SETUP"},
    {"RINGBOLT_SSH"},
    {"RINGBOLT_STREAMS"},
    {"RINGBOLT_SYSROOT"},
    {"RINGBOLT_THUNDERBOLT_ROOT"},
    {"RINGBOLT_VERBS"},
    {"RINGBOLT_WORLD_SIZE", "", 1, 64},
});

// "RINGBOLT_ADDR_" stands for RINGBOLT_ADDR_0 and so on.
bool is_numbered(std::string_view known) { return known.ends_with('_'); }

const OwnVariable* find(std::string_view name) {
  const auto found = std::ranges::find_if(kVariables, [&](const OwnVariable& one) {
    return is_numbered(one.name) ? name.starts_with(one.name) : name == one.name;
  });
  return found == kVariables.end() ? nullptr : &*found;
}

std::string objection_to_name(std::string_view name) {
  // Programs may have variables of their own that begin like ours: of a short one a single slip.
  const size_t most = name.size() - kPrefix.size() < 6 ? 1 : 2;
  const OwnVariable* near = nullptr;
  size_t nearest = most + 1;
  for (const OwnVariable& one : kVariables) {
    const size_t distance = edit_distance(name, one.name);
    // A prefix with a number after it (RINGBOLT_ADDR_) is compared as it stands: find() has already taken those that
    // match.
    if (distance < nearest) {
      near = &one;
      nearest = distance;
    }
  }
  return near == nullptr ? "" : fmt::format("{} means nothing to Ringbolt: did you mean {}?", name, near->name);
}

std::string objection_to_value(const OwnVariable& variable, std::string_view value) {
  if (value.empty()) {
    return "";  // as good as unset
  }
  if (variable.most != 0) {
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    const bool is_good = error == std::errc{} && end == value.data() + value.size() && number >= variable.least &&
                         number <= variable.most;
    return is_good ? ""
                   : fmt::format("{}={}: give a whole number from {} to {}, or unset it", variable.name, value,
                                 variable.least, variable.most);
  }
  std::string words;
  for (std::string_view rest = variable.accepted; !rest.empty();) {
    const size_t end = std::min(rest.find(' '), rest.size());
    if (rest.substr(0, end) == value) {
      return "";
    }
    words += (words.empty() ? "" : ", ") + std::string(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return words.empty() ? "" : fmt::format("{}={}: give one of {}, or unset it", variable.name, value, words);
}

/// What can be shown: a value may be anything.
std::string shown(const std::string& value) {
  constexpr size_t kMost = 160;
  std::string text = printable(value);
  if (text.size() > kMost) {
    text.resize(kMost);
    text += "...";
  }
  return text;
}

}  // namespace

std::span<const OwnVariable> own_variables() { return kVariables; }

bool takes(std::string_view name, std::string_view value) {
  const OwnVariable* known = find(name);
  return known != nullptr && objection_to_value(*known, value).empty();
}

std::vector<std::string> odd_variables(const char* const* environment) {
  std::vector<std::string> lines;
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    const size_t end = std::min(entry.find('='), entry.size());
    const std::string_view name = entry.substr(0, end);
    // Slips in the prefix itself (RINGBLOT_) are other people's names as far as we know.
    if (!name.starts_with(kPrefix)) {
      continue;
    }
    const std::string_view value = entry.substr(std::min(end + 1, entry.size()));
    const OwnVariable* known = find(name);
    const std::string objection = known == nullptr ? objection_to_name(name) : objection_to_value(*known, value);
    if (!objection.empty()) {
      lines.push_back(shown(objection));
    }
  }
  std::ranges::sort(lines);
  return lines;
}

// Once per process, by whoever comes first. Reads environ without a lock, as getenv() does.
void say_odd_variables() {
  static std::atomic<bool> is_said{false};
  if (!is_said.exchange(true)) {
    for (const std::string& line : odd_variables(environ)) {
      say(fmt::format("ringbolt: {}\n", line));
    }
  }
}

}  // namespace ringbolt::base
