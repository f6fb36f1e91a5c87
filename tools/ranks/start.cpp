#include "ranks/start.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/unique_fd.h"
#include "bootstrap/environment.h"
#include "cluster/address_plan.h"
#include "cluster_state.h"
#include "commands.h"
#include "failure.h"
#include "node_environment.h"
#include "progress_line.h"

namespace ringbolt::tools::ranks {
namespace {

/// Without a cluster, a process may be meant to be a rank by variables that say too little: then their fault is told.
void refuse_half_a_rank() {
  const bootstrap::Environment environment = bootstrap::environment_of_process();
  const bool says_something = std::ranges::any_of(environment, [](const auto& variable) {
    const bool is_number = variable.first.ends_with("RANK") || variable.first.ends_with("SIZE");
    return is_number && bootstrap::is_of_launcher(variable.first);
  });
  if (says_something && cluster_names(cluster::RuntimeDir::from_environment()).empty()) {
    (void)bootstrap::config_from(environment, bootstrap::read_file);
  }
}

}  // namespace

bool is_rank(const bootstrap::Environment& environment) {
  const auto value = [&environment](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string() : found->second;
  };
  // The last stands for a shell on a node, too: `ringbolt env`.
  constexpr std::array kNames{"RINGBOLT_RANK", "RANK",     "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK",
                              "JACCL_RANK",    "MLX_RANK", "RINGBOLT_NODE"};
  const std::string step = value("SLURM_STEP_NUM_TASKS");
  const bool is_only_task = (step.empty() ? value("SLURM_NTASKS") : step) == "1";
  const bool is_slurms = !value("SLURM_PROCID").empty();
  return std::any_of(kNames.begin(), kNames.end(),
                     [&](const std::string& name) {
                       // srun says these, too.
                       const bool is_of_task = is_slurms && is_only_task && name.rfind("PMI", 0) == 0;
                       return !value(name.c_str()).empty() && !is_of_task;
                     }) ||
         (is_slurms && !is_only_task);
}

void take_rank(bootstrap::Environment& environment, uint32_t rank, uint32_t n_ranks, uint32_t first_node) {
  environment["RINGBOLT_RANK"] = std::to_string(rank);
  environment["RINGBOLT_WORLD_SIZE"] = std::to_string(n_ranks);
  if (environment.contains("RINGBOLT_MEETING_HOST")) {
    environment["RINGBOLT_MEETING_HOST"] = cluster::management_address(first_node).text();
  }
}

int run_on_all_nodes(const std::string& cluster, std::vector<std::string> words, std::optional<double> timeout_s) {
  if (cluster.empty()) {
    refuse_half_a_rank();
  }
  const LiveCluster live = open_cluster(cluster);
  prepare_meeting();
  RunOptions run_options;
  run_options.cluster = live.model.name;
  run_options.is_untagged = true;  // rank 0 prints one table; who else says something names its rank
  run_options.timeout_s = timeout_s;
  run_options.shows_progress = Progress::usual() == Progress::Style::kTerminal;
  const bool is_elsewhere = live.is_remote() && !live.model.prefix.empty();
  run_options.command = {(is_elsewhere ? live.model.prefix : own_prefix()) + "/bin/ringbolt"};
  run_options.command.insert(run_options.command.end(), std::make_move_iterator(words.begin()),
                             std::make_move_iterator(words.end()));
  run_options.command.insert(run_options.command.end(), {"--as-rank", "--of", std::to_string(live.model.nodes.size())});
  if (run_options.shows_progress) {
    run_options.command.emplace_back("--tell-progress");
  }
  return run(run_options);
}

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
