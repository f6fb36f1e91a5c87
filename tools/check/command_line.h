#pragma once

#include <functional>

#include "commands.h"

namespace CLI {
class App;
}

namespace ringbolt::tools::check {

/// Adds the subcommand `check`, which fills `options` and then calls `chosen`. Both outlive `app`.
void define_check(CLI::App& app, CheckOptions& options, const std::function<void()>& chosen);

}  // namespace ringbolt::tools::check
