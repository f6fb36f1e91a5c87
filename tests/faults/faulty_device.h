// What the tests of faults share: a process of its own for each plan of faults, for a process reads its plan once.
#pragma once

#include <functional>
#include <string>

#include "endpoint.h"

namespace ringbolt::faults {

/// "0.01%", "0.1%", "1%", "10%".
extern const char* const kChances[4];

/// Runs `body` in a child that has RINGBOLT_FAULTS=`plan`, speaks IPv6, and has opened nothing yet. Its failed
/// expectations fail the test. Returns what it printed on standard error with RINGBOLT_LOG=debug, which ends in the
/// counts.
std::string with_faults(const std::string& plan, const std::function<void()>& body);

/// The number before `word` in the line that holds `line`; 0 if there is none.
unsigned long count_in(const std::string& text, const std::string& line, const std::string& word);

}  // namespace ringbolt::faults
