// What a reboot of a node gives back: the objects that dead programs have left on its devices.

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/process_start.h"
#include "cluster/read_file.h"
#include "cluster_state.h"
#include "commands.h"
#include "failure.h"
#include "profile/ledger_book.h"

namespace ringbolt::tools {
namespace {

struct NodeLedgers {
  std::string node;
  std::vector<std::string> paths;
};

/// The ledgers of a node's devices: "<node>-<device>.ledger" in a cluster's folder, "<device>.ledger" of the default
/// one.
NodeLedgers ledgers_of(const RebootOptions& options) {
  const bool is_local = options.node == "local";
  std::string folder = cluster::RuntimeDir::from_environment().default_dir();
  std::string prefix;
  NodeLedgers ledgers{"local", {}};
  if (!is_local) {
    const LiveCluster live = open_cluster(options.cluster);
    if (live.is_remote()) {
      throw UsageError("this cluster's nodes are machines: restart the machine itself");
    }
    const uint32_t node = find_node(live.model, options.node);
    folder = live.dir.cluster(live.model.name);
    prefix = std::to_string(node) + "-";
    ledgers.node = live.model.nodes[node].name;
  }
  for (const std::string& name : cluster::names_in(folder)) {
    if (name.starts_with(prefix) && name.ends_with(".ledger")) {
      ledgers.paths.push_back(folder + "/" + name);
    }
  }
  return ledgers;
}

/// Nothing where the file is gone by now, or damaged: it goes all the same. Throws base::Error where it can't be read:
/// nobody knows then whose objects it tells of.
std::optional<profile::LedgerBook> book_in(const std::string& path) {
  constexpr size_t kMostBytes = 1U << 20U;
  try {
    auto book = profile::LedgerBook::parse(cluster::read_file(path, kMostBytes));
    return book ? std::optional(std::move(*book)) : std::nullopt;
  } catch (const base::Error& error) {
    if (error.errno_value() != ENOENT && error.errno_value() != EFBIG) {
      throw;
    }
    return std::nullopt;
  }
}

}  // namespace

int reboot(const RebootOptions& options) {
  const NodeLedgers ledgers = ledgers_of(options);
  std::set<pid_t> holders;
  uint32_t leaked = 0;
  for (const std::string& path : ledgers.paths) {
    const std::optional<profile::LedgerBook> book = book_in(path);
    if (!book) {
      continue;
    }
    for (const profile::LedgerBook::Owner& owner : book->owners) {
      if (base::is_same_process(owner.pid, owner.started)) {
        holders.insert(owner.pid);
      } else {
        leaked += owner.held[static_cast<size_t>(profile::Counted::pd)];
      }
    }
    leaked += book->leaked[static_cast<size_t>(profile::Counted::pd)];
  }
  if (!holders.empty() && !options.is_forced) {
    std::vector<Program> programs;
    for (const pid_t pid : holders) {
      programs.push_back(program_of(pid));
    }
    throw UsageError(
        fmt::format("programs hold objects of node {}: {}; end them, or give --force (they are killed, as a "
                    "reboot would)",
                    ledgers.node, list_programs(programs)));
  }
  for (const pid_t pid : holders) {
    if (base::process_start(pid) == 0 && ::kill(pid, 0) == 0) {
      throw UsageError(
          fmt::format("nobody can tell whether process {} still is the one that holds objects of node {}, and "
                      "nothing was ended: mount /proc, or end it yourself",
                      pid, ledgers.node));
    }
  }
  for (const pid_t pid : holders) {
    if (::kill(pid, SIGKILL) != 0 && errno != ESRCH) {
      throw base::Error(errno, "kill", fmt::format("process {}, which holds objects of node {}", pid, ledgers.node));
    }
  }
  for (const std::string& path : ledgers.paths) {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
      throw base::Error(errno, "remove", path);
    }
  }
  fmt::print(
      "node {} is as after a reboot: {} leaked protection domain{} came back{}\n", ledgers.node, leaked,
      leaked == 1 ? "" : "s",
      holders.empty() ? "" : fmt::format(", {} program{} killed", holders.size(), holders.size() == 1 ? "" : "s"));
  return kOk;
}

}  // namespace ringbolt::tools
