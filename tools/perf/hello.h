#pragma once

#include <string>
#include <string_view>

#include "perf/parameters.h"

namespace ringbolt::tools::perf {

/// The first text that the ends send each other: "ringbolt perf 1" and a line "name value" for each parameter.
std::string emit_hello(const Parameters& mine);

/// Why an end with `mine` can't measure with one that said `theirs`: in words, with both values and the flag. Empty: it
/// can. Any bytes are safe to pass. Thread-safe.
std::string hello_objection(const Parameters& mine, std::string_view theirs);

}  // namespace ringbolt::tools::perf
