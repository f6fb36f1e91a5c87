#pragma once

#include <string>
#include <string_view>

#include "base/parsed.h"
#include "fault/rule.h"

namespace ringbolt::fault {

inline constexpr size_t kMaxPlanBytes = 64 * 1024;

/// Reads a plan: one fault a line (or between semicolons), `#` begins a remark. docs/faults.md has the grammar. Any
/// bytes are safe to pass. Thread-safe.
base::Parsed<Plan> parse_plan(std::string_view text);

/// The line that parse_plan() reads as this rule, without a line end; what has its default is left out. Thread-safe.
std::string emit_rule(const Rule& rule);

/// One line for each rule. Thread-safe.
std::string emit_plan(const Plan& plan);

}  // namespace ringbolt::fault
