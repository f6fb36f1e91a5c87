#include "base/error.h"

#include <cstring>
#include <utility>

namespace ringbolt::base {
namespace {

std::string describe(int errno_value, const std::string& call, const std::string& object) {
  return object + ": " + call + ": " + std::strerror(errno_value);
}

}  // namespace

Error::Error(int errno_value, std::string call, std::string object)
    : std::runtime_error(describe(errno_value, call, object)),
      errno_value_(errno_value),
      call_(std::move(call)),
      object_(std::move(object)) {}

Error::Error(int errno_value, std::string call, std::string object, const std::string& remedy)
    : std::runtime_error(describe(errno_value, call, object) + "; " + remedy),
      errno_value_(errno_value),
      call_(std::move(call)),
      object_(std::move(object)) {}

}  // namespace ringbolt::base
