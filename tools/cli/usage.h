#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace ringbolt::tools {

/// What is wrong with a command line that `app` has refused, and what to write instead. `words`: those that it got, up
/// to "--"; `has_command`: there was a "--".
std::string usage_words(const CLI::App& app, const CLI::ParseError& error, const std::vector<std::string>& words,
                        bool has_command);

}  // namespace ringbolt::tools
