#pragma once

#include <functional>

#include <CLI/CLI.hpp>

#include "commands.h"

namespace ringbolt::tools::nccl_command {

void define_nccl(CLI::App& app, NcclOptions& options, const std::function<void()>& plan_chosen,
                 const std::function<void()>& test_chosen);

}  // namespace ringbolt::tools::nccl_command
