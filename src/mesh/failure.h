#pragma once

#include <cerrno>
#include <stdexcept>
#include <string>

#include "ringbolt/status.h"

namespace ringbolt::mesh {

/// Why no group came about, or can be made of another one: for people. The public functions that throw throw this.
class JoinError : public std::runtime_error {
 public:
  /// `code`: an errno, as the C API answers.
  /// EIO stands for what no errno fits, such as a cable that is missing.
  explicit JoinError(const std::string& text, int code = EIO) : std::runtime_error(text), code_(code) {}
  int code() const { return code_; }

 private:
  int code_;
};

}  // namespace ringbolt::mesh
