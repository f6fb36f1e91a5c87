#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pair/hello.h"
#include "verify/context.h"
#include "verify/plan.h"
#include "verify/result.h"

// What the two ends tell each other, as texts and back. Any bytes are safe to pass. Thread-safe.
namespace ringbolt::tools::verify {

/// What both must have been asked for alike.
std::vector<pair::HelloEntry> entries_of(const Wish& wish);

/// Device and library of an end; a text that says neither makes both "?".
std::string emit_facts(const EndFacts& mine);
EndFacts parse_facts(std::string_view text);

/// What came of a step at one end.
std::string emit_outcome(const Outcome& mine);
std::optional<Outcome> parse_outcome(std::string_view text);

}  // namespace ringbolt::tools::verify
