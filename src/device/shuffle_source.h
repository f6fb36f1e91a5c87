#pragma once

#include <optional>

#include "shuffle/shuffle.h"

namespace ringbolt::device {

/// What RINGBOLT_SHUFFLE asks of this process; nothing: nobody asks. Throws base::Error.
std::optional<shuffle::Shuffle> shuffle_from_environment();

}  // namespace ringbolt::device
