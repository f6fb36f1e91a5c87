#pragma once

#include <functional>

#include "commands.h"

namespace CLI {
class App;
}

namespace ringbolt::tools::plan {

/// Adds the subcommand `plan`, which fills `options` and then calls `chosen`. Both outlive `app`.
void define_plan(CLI::App& app, PlanOptions& options, const std::function<void()>& chosen);

}  // namespace ringbolt::tools::plan
