#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace ringbolt::tools {

/// Prints what the last of `words` may become, a word a line, commands with a tab and what they do: the shells' files
/// in completion/ ask so. `words` follow "ringbolt"; the last is what was typed so far, perhaps nothing. Nothing is
/// printed where a file may stand.
int complete(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace ringbolt::tools
