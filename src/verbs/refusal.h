#pragma once

#include <string>

#include "verbs/errno_meaning.h"

namespace ringbolt::verbs {

/// Throws base::Error of a step that was refused with `error`, a positive errno (0, which some providers leave behind
/// with a null pointer, counts as ENOMEM), with what the dictionary says about it. `object`: the device, and the
/// numbers.
[[noreturn]] void refuse(Step step, int error, std::string object);

}  // namespace ringbolt::verbs
