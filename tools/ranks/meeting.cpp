#include "ranks/meeting.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <random>

#include <fmt/format.h>

#include "base/error.h"
#include "base/unique_fd.h"
#include "bootstrap/environment.h"
#include "failure.h"

namespace ringbolt::tools::ranks {

uint16_t free_port() {
  constexpr uint32_t kFirst = 20000;  // below those of outgoing connections
  constexpr uint32_t kCount = 10000;
  constexpr int kMostTries = 100;
  std::random_device random;
  for (int n_tries = 0; n_tries < kMostTries; ++n_tries) {
    const auto port = static_cast<uint16_t>(kFirst + random() % kCount);
    const base::UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    if (socket.is_open() && ::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
      return port;
    }
  }
  throw base::Error(errno, "choose a port", "the place where ranks meet");
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
    bootstrap::check(bootstrap::config_from(
        options.environment.empty() ? bootstrap::environment_of_process() : options.environment, bootstrap::read_file));
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

tl::expected<std::vector<std::string>, Status> exchange_texts(Group& group, const std::string& mine,
                                                              uint64_t timeout_ms) {
  CallOptions options;
  options.timeout_ms = timeout_ms;
  const uint64_t length = mine.size();
  std::vector<uint64_t> lengths(group.size());
  if (Status status = group.all_gather(&length, lengths.data(), 1, Type::uint64, options); !status.is_ok()) {
    return tl::unexpected<Status>(std::move(status));
  }
  const std::vector<size_t> counts(lengths.begin(), lengths.end());
  std::string all(std::accumulate(counts.begin(), counts.end(), size_t{0}), '\0');
  if (Status status = group.all_gatherv(mine.data(), all.data(), counts, Type::uint8, options); !status.is_ok()) {
    return tl::unexpected<Status>(std::move(status));
  }
  std::vector<std::string> texts;
  size_t at = 0;
  for (const size_t count : counts) {
    texts.push_back(all.substr(at, count));
    at += count;
  }
  return texts;
}

}  // namespace ringbolt::tools::ranks
