#include "base/error.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace ringbolt::base {
namespace {

std::string describe(int errno_value, const std::string& call, const std::string& object) {
  return object + ": " + call + ": " + reason_of(errno_value);
}

}  // namespace

std::string reason_of(int errno_value) {
  std::array<char, 128> room{};
  // The GNU form: the text may or may not lie in `room`. strerror() shares one room among all threads.
  std::string reason = ::strerror_r(errno_value, room.data(), room.size());
  // The limit of this moment: the program may raise it after it has failed.
  rlimit limit{};
  if (errno_value == EMFILE && ::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    reason += fmt::format(" (this process may have {}: raise `ulimit -n`)", limit.rlim_cur);
  } else if (errno_value == ENFILE) {
    reason += " (the whole machine's: raise /proc/sys/fs/file-max)";
  }
  return reason;
}

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
