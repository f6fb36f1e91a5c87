#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "commands.h"
#include "enter_namespace.h"
#include "failure.h"
#include "node_choice.h"

namespace ringbolt::tools {
namespace {

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> array;
  for (std::string& text : texts) {
    array.push_back(text.data());
  }
  array.push_back(nullptr);
  return array;
}

}  // namespace

int exec(const ExecOptions& options) {
  std::vector<std::string> command = options.command;
  const NodeEnvironment changes = environment_of(options.cluster, options.node);
  std::vector<std::string> environment = merged_environment(changes);
  if (!changes.netns.empty()) {
    if (const char* call = enter_namespace(changes.netns.c_str()); call != nullptr) {
      throw UsageError(fmt::format("can't enter the network namespace {}: {}: {}; run it as root", changes.netns, call,
                                   std::strerror(errno)));
    }
  }
  ::execvpe(command.front().c_str(), pointers(command).data(), pointers(environment).data());
  throw UsageError(
      fmt::format("can't start {}: {}; is it installed and on PATH?", command.front(), std::strerror(errno)));
}

}  // namespace ringbolt::tools
