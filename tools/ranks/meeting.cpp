#include "ranks/meeting.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdlib>
#include <random>

#include <fmt/format.h>

#include "base/error.h"
#include "base/unique_fd.h"
#include "bootstrap/environment.h"
#include "failure.h"

namespace ringbolt::tools::ranks {

uint16_t free_port() {
  const base::UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t length = sizeof address;
  if (!socket.is_open() || ::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    throw base::Error(errno, "choose a port", "the place where ranks meet");
  }
  return ntohs(address.sin_port);
}

std::string random_secret() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

void prepare_meeting() {
  for (const auto& [name, value] : bootstrap::environment_of_process()) {
    if (bootstrap::is_of_launcher(name)) {
      ::unsetenv(name.c_str());
    }
  }
  ::setenv("RINGBOLT_GROUP_PORT", std::to_string(free_port()).c_str(), 0);
  if (std::getenv("RINGBOLT_SECRET_FILE") == nullptr) {
    ::setenv("RINGBOLT_SECRET", random_secret().c_str(), 0);
  }
}

Group join(const GroupOptions& options, std::optional<uint32_t> n_ranks) {
  try {
    (void)bootstrap::config_from(
        options.environment.empty() ? bootstrap::environment_of_process() : options.environment, bootstrap::read_file);
  } catch (const base::Error& error) {
    throw UsageError(error.what());
  }
  std::optional<Group> group;
  try {
    group = Group::join(options);
  } catch (const std::exception& error) {
    throw FoundProblem(error.what());
  }
  if (n_ranks && group->size() != *n_ranks) {
    throw FoundProblem(
        fmt::format("this group has {} ranks instead of {}, one per node: look which variable of the "
                    "environment says so (docs/environment.md) and unset it",
                    group->size(), *n_ranks));
  }
  return std::move(*group);
}

}  // namespace ringbolt::tools::ranks
