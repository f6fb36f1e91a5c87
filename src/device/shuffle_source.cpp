#include "device/shuffle_source.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string>

#include "base/error.h"
#include "cluster/read_file.h"

namespace ringbolt::device {
namespace {

const char* variable_or_nothing(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// As launchers say it; the first that is there.
std::string own_rank() {
  for (const char* const name : {"RINGBOLT_RANK", "RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                 "SLURM_PROCID", "MLX_RANK", "JACCL_RANK"}) {
    if (const std::string rank = variable_or_nothing(name); !rank.empty()) {
      return rank;
    }
  }
  return "";
}

/// By its command line; a program that can't read it is like all others that can't.
uint64_t own_role() {
  std::string line;
  try {
    constexpr size_t kMost = 1U << 20U;
    line = cluster::read_file("/proc/self/cmdline", kMost);
  } catch (const base::Error&) {
  }
  const std::string program = line.substr(0, line.find('\0'));
  const auto words = static_cast<size_t>(std::ranges::count(line, '\0'));
  return shuffle::role_of(program.substr(program.rfind('/') + 1), words, own_rank(),
                          variable_or_nothing("RINGBOLT_NODE"));
}

}  // namespace

std::optional<shuffle::Shuffle> shuffle_from_environment() {
  const std::string value = variable_or_nothing("RINGBOLT_SHUFFLE");
  if (value.empty() || value == "off") {
    return std::nullopt;
  }
  const auto wish = shuffle::parse_wish(value);
  if (!wish) {
    throw base::Error(EINVAL, wish.error().text(), "RINGBOLT_SHUFFLE=" + value, "docs/shuffle.md has the words");
  }
  return shuffle::Shuffle(*wish, own_role());
}

}  // namespace ringbolt::device
