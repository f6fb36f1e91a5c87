#pragma once

#include <string>
#include <vector>

#include "commands.h"

namespace ringbolt::tools {

/// Reads a file of any of the four formats that `ringbolt hostfile` writes, or of the one that is given, prints who is
/// in it, which pairs have devices and what is probably wrong, for the given backend or else the file's. Returns kOk,
/// or kFoundProblem if something is. Throws base::Error if the file can't be read.
int check_hostfile(const HostfileOptions& options);

/// What is probably wrong in a text that may be such a file, or why it is none. Thread-safe.
std::vector<std::string> hostfile_warnings(const std::string& text);

}  // namespace ringbolt::tools
