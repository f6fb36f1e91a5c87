#pragma once

#include <stdexcept>
#include <string>

#include "ringbolt/status.h"

namespace ringbolt::group {

/// Why no group came about, or can be made of another one: for people. The public functions that throw throw this.
class JoinError : public std::runtime_error {
 public:
  explicit JoinError(const std::string& text) : std::runtime_error(text) {}
};

}  // namespace ringbolt::group
