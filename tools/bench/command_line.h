#pragma once

#include <functional>

#include "commands.h"

namespace CLI {
class App;
}

namespace ringbolt::tools::bench {

/// Adds the subcommand `bench`, which fills `options` and then calls `chosen`. Both outlive `app`.
void define_bench(CLI::App& app, BenchOptions& options, const std::function<void()>& chosen);

}  // namespace ringbolt::tools::bench
