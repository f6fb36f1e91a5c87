#pragma once

#include <functional>

#include "commands.h"

namespace CLI {
class App;
}

namespace ringbolt::tools::verify {

/// Adds the subcommand `verify`, which fills `options` and then calls `chosen`. Both outlive `app`.
void define_verify(CLI::App& app, VerifyOptions& options, const std::function<void()>& chosen);

}  // namespace ringbolt::tools::verify
