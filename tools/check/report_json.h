#pragma once

#include <nlohmann/json.hpp>

#include "check/report.h"

namespace ringbolt::tools::check {

using Json = nlohmann::ordered_json;

/// A rank's line, without its checksums.
Json json_of(const Report& report);

}  // namespace ringbolt::tools::check
