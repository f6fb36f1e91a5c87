#include "probe/verbs_objects.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "base/error.h"
#include "bringup/gid_choice.h"
#include "bringup/survey.h"
#include "probe/probe_failure.h"

namespace ringbolt::tools {

void fail_call(const char* call, int error) {
  throw ProbeFailure(fmt::format("{}: {}", call, base::reason_of(std::abs(error))));
}

verbs::Context open_device(const verbs::Library& library, const std::string& name) {
  try {
    const std::vector<std::string> names = verbs::device_names(library);
    if (names.empty()) {
      throw ProbeFailure("the verbs library has no device");
    }
    if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end()) {
      throw ProbeFailure(fmt::format("there is no device {}; there are: {}", name, fmt::join(names, ", ")));
    }
    return verbs::Context(library, name);
  } catch (const base::Error& error) {
    throw ProbeFailure(error.what());
  }
}

uint8_t choose_gid(const verbs::Context& context, uint8_t port, ibv_gid& gid) {
  try {
    const bringup::GidChoice choice = bringup::choose_gid(bringup::read_gid_table(context, port));
    if (!choice.chosen) {
      throw ProbeFailure(fmt::format("{}: {}", context.device(), choice.text()));
    }
    gid = bringup::ibv_gid_of(choice.chosen->gid);
    return choice.chosen->index;
  } catch (const base::Error& error) {
    throw ProbeFailure(error.what());
  }
}

}  // namespace ringbolt::tools
