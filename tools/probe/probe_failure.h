#pragma once

#include <stdexcept>
#include <string>

namespace ringbolt::tools {

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
