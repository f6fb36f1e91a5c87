#pragma once

#include <stdexcept>
#include <string>

namespace ringbolt::tools {

/// What a command answers to its caller.
inline constexpr int kOk = 0;
inline constexpr int kFoundProblem = 1;
inline constexpr int kWrongUsage = 2;
/// As timeout(1) answers.
inline constexpr int kTimedOut = 124;

/// Wrong usage or bad input: printed after the command's name, then exit kWrongUsage. what() names the thing and the
/// remedy. Thrown before anything was changed; where several machines are changed, what() says which could not be.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What was asked for makes sense, and something is wrong out there: printed likewise, then exit kFoundProblem.
class FoundProblem : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A measurement ends here: what() is its report. `is_echo`: only says that the other end failed first, and that end's
/// report is the one that matters.
class ProbeFailure : public std::runtime_error {
 public:
  explicit ProbeFailure(const std::string& report, bool is_echo = false)
      : std::runtime_error(report), is_echo_(is_echo) {}
  bool is_echo() const { return is_echo_; }

 private:
  bool is_echo_;
};

}  // namespace ringbolt::tools
