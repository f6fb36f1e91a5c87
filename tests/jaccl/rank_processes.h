// Child processes with settings of their own.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace ringbolt::jaccl {

/// Starts `arguments[0]` with this process's environment plus `settings` ("NAME=value").
/// Throws std::runtime_error when that is impossible.
pid_t start_process(const std::vector<std::string>& arguments,
                    const std::vector<std::string>& settings);

/// Waits for the exit code; after the deadline the process is killed and -1 comes back.
int wait_for_process(pid_t pid);

/// Both in one.
int run_process(const std::vector<std::string>& arguments,
                const std::vector<std::string>& settings);

}  // namespace ringbolt::jaccl
