#pragma once

#include <string>

namespace ringbolt::tools {

/// Reads a file of any of the four formats that `ringbolt hostfile` writes, prints who is in it, which pairs have
/// devices and what is probably wrong. Returns kOk, or kFoundProblem if something is. Throws base::Error if the file
/// can't be read.
int check_hostfile(const std::string& path, bool is_json);

}  // namespace ringbolt::tools
