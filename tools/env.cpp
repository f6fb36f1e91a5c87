#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/say.h"
#include "commands.h"
#include "failure.h"
#include "node_environment.h"

namespace ringbolt::tools {

int env(const EnvOptions& options) {
  const NodeEnvironment environment = environment_of(options.cluster, options.node);
  if (!environment.netns.empty()) {
    base::say(
        fmt::format("ringbolt env: a node of this cluster is also a network namespace, which no variable enters; for a "
                    "shell there: ringbolt exec {} -- bash\n",
                    options.node));
  }
  if (options.is_json) {
    nlohmann::ordered_json root{{"set", nlohmann::ordered_json::object()}, {"unset", environment.unset}};
    for (const Variable& one : environment.set) {
      root["set"][one.name] = one.value;
    }
    fmt::print("{}\n", root.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    return kOk;
  }
  for (const std::string& name : environment.unset) {
    fmt::print("unset {}\n", name);
  }
  for (const Variable& one : environment.set) {
    fmt::print("export {}={}\n", one.name, shell_quoted(one.value));
  }
  return kOk;
}

}  // namespace ringbolt::tools
