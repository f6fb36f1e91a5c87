#pragma once

#include <functional>

#include "commands.h"

namespace CLI {
class App;
}

namespace ringbolt::tools::perf {

/// Adds the subcommand `perf`, which fills `options` and then calls `chosen`. Both outlive `app`.
void define_perf(CLI::App& app, PerfOptions& options, const std::function<void()>& chosen);

}  // namespace ringbolt::tools::perf
