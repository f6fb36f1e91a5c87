#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "child_process.h"

namespace ringbolt::tools {

/// What a program printed and how it ended.
struct Captured {
  bool is_late = false;  ///< it was killed at the time limit
  int exit_code = 0;
  std::string output;
  std::string error_output;
};

/// Runs a program to its end with `input` as its input, and keeps the first `kMostCapturedBytes` of each output. Throws
/// UsageError if it can't be started. Blocks for `timeout_s` at most. Once `is_stopped`, which is asked often, says so,
/// it gets SIGINT and some seconds to end.
Captured run_captured(Launch launch, const std::string& input, double timeout_s,
                      const std::function<bool()>& is_stopped = nullptr);

inline constexpr size_t kMostCapturedBytes = size_t{4} << 20U;

/// The text without its last line ends, other line ends replaced by "; ", cut to what a message can hold.
std::string one_line(const std::string& text);

}  // namespace ringbolt::tools
