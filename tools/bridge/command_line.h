#pragma once

#include <functional>

#include <CLI/CLI.hpp>

#include "commands.h"

namespace ringbolt::tools::bridge {

void define_bridge(CLI::App& app, BridgeOptions& options, const std::function<void()>& chosen);

}  // namespace ringbolt::tools::bridge
