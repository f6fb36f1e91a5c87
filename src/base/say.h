#pragma once

#include <string_view>

namespace ringbolt::base {

/// Writes to standard error. What can't be written there (it is closed, nobody reads it, a disk is full) is lost: no
/// program ends because a library of its own could not say something. Blocks while nobody reads a full pipe.
/// Thread-safe.
void say(std::string_view text) noexcept;

}  // namespace ringbolt::base
