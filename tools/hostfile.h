#pragma once

#include <string>
#include <vector>

namespace ringbolt::tools {

/// What is probably wrong in a text that may be such a file, or why it is none. Thread-safe.
std::vector<std::string> hostfile_warnings(const std::string& text);

}  // namespace ringbolt::tools
