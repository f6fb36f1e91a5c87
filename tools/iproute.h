#pragma once

#include <string>
#include <vector>

namespace ringbolt::tools {

/// The path of `program`, looked for on PATH and then where system tools lie. Throws UsageError that names the Debian
/// package `package` if it is nowhere.
std::string find_program(const std::string& program, const std::string& package);

/// What to do when a line of a batch fails.
enum class OnFailure { stop, go_on };

/// Runs `words` ("ip", "-n", "rb-x-0"; or "tc") with the lines of `script` as a batch, one command a line. Throws
/// UsageError that quotes the line and what the tool said of it; with OnFailure::go_on all lines are tried and nothing
/// is thrown for one that fails. Blocks for as long as the tool works, at most a minute.
void run_iproute(std::vector<std::string> words, const std::string& script, OnFailure on_failure = OnFailure::stop);

}  // namespace ringbolt::tools
