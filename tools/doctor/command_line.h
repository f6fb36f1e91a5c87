#pragma once

#include <functional>

#include "commands.h"

namespace CLI {
class App;
}

namespace ringbolt::tools::doctor {

/// Adds the subcommand `doctor`, which fills `options` and then calls `chosen`. Both outlive `app`.
void define_doctor(CLI::App& app, DoctorOptions& options, const std::function<void()>& chosen);

}  // namespace ringbolt::tools::doctor
