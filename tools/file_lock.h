#pragma once

#include <string>

#include "base/unique_fd.h"

namespace ringbolt::tools {

/// Takes the lock of file `path`, which is made if it is missing, until the descriptor is closed. Waits 10 s at most
/// for another `up` or `down` that holds it; then throws UsageError. Throws base::Error if there can be no such file.
base::UniqueFd lock_file(const std::string& path);

}  // namespace ringbolt::tools
