#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace ringbolt::tools {

struct Request;

struct HelpOptions {
  std::vector<std::string> command;  ///< "fault", "add"; empty: the whole
  bool is_json = false;
};

/// Adds `help`, and `complete`, which shells call and which is hidden. Both look at `app`, which outlives their action.
void define_help(CLI::App& app, Request& request);

/// Sorts the commands of `app` by what people do with them, for its help. A command that is in no group is a bug.
void group_commands(CLI::App& app);

}  // namespace ringbolt::tools
