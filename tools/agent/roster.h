#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/unique_fd.h"
#include "cluster/runtime_dir.h"

namespace ringbolt::tools::agent {

/// Which agents of a cluster run: each holds the lock of a file with its number for as long as it lives.
class Roster {
 public:
  Roster(cluster::RuntimeDir dir, std::string cluster) : dir_(std::move(dir)), cluster_(std::move(cluster)) {}

  /// An agent's place in it, until its end.
  struct Entry {
    base::UniqueFd lock;
  };
  /// Throws UsageError if the node has an agent.
  Entry enter(uint32_t node) const;
  /// The node's agent; nothing if it has none.
  std::optional<pid_t> find(uint32_t node) const;
  /// Where its agent writes what happens.
  std::string log_file(uint32_t node) const { return file(node, "log"); }

 private:
  std::string file(uint32_t node, const char* suffix) const;

  cluster::RuntimeDir dir_;
  std::string cluster_;
};

}  // namespace ringbolt::tools::agent
