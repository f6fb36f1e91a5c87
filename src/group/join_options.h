#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "bootstrap/environment.h"
#include "mesh/mesh.h"

namespace ringbolt::group {

/// The program's own way for ranks to tell each other something: see ringbolt_exchange.
struct Exchange {
  /// Called in the thread that joins, without any lock of ours. Returns 0 or an errno.
  int (*call)(void* context, const void* mine, void* all, size_t length_bytes) = nullptr;
  // the program's; must stay good while groups may be joined or rejoined with it
  void* context = nullptr;
};

/// What a program says of its group. A value.
struct JoinOptions {
  /// Stands for the process's environment. Nothing: the process's.
  std::optional<bootstrap::Environment> environment = {};
  /// What else it says, as variables of the same meaning, so that one reader checks all of it: these win.
  bootstrap::Environment said = {};
  std::string host = {};          ///< where rank 0 is
  uint16_t port = 0;              ///< 0 only with an exchange
  uint64_t timeout_ms = 300'000;  ///< of calls that say nothing of their own
  Exchange exchange = {};
};

/// All that is said. Thread-safe as long as nobody changes the process's environment.
/// Later ones win: the environment, then what was said, then host and port.
bootstrap::Environment variables_of(const JoinOptions& options);

/// How ranks become a mesh, but for where they meet. Says on standard error what it passes over. Throws JoinError.
/// Reads the device file that the environment names, if it names one.
mesh::MeshPlan plan_of(const bootstrap::Environment& environment, const bootstrap::Config& meeting);

}  // namespace ringbolt::group
