#pragma once

#include "commands.h"

namespace ringbolt::tools {

/// Reads a file of any of the four formats that `ringbolt hostfile` writes, or of the one that is given, prints who is
/// in it, which pairs have devices and what is probably wrong, for the given backend or else the file's. Returns kOk,
/// or kFoundProblem if something is. Throws base::Error if the file can't be read.
int check_hostfile(const HostfileOptions& options);

}  // namespace ringbolt::tools
