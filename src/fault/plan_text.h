#pragma once

#include <string>
#include <string_view>

#include "base/parsed.h"
#include "fault/rule.h"

namespace ringbolt::fault {

// Room for Plan::kMaxRules long lines. Files that are longer are refused unread.
inline constexpr size_t kMaxPlanBytes = 64 * 1024;

/// Reads a plan: one fault a line (or between semicolons), `#` begins a remark. docs/faults.md has the grammar. Any
/// bytes are safe to pass. Thread-safe. An error names the line, from 1; 0: the text as a whole. Nothing of a plan
/// with an error counts.
base::Parsed<Plan> parse_plan(std::string_view text);

/// The line that parse_plan() reads as this rule, without a line end; what has its default is left out. Thread-safe.
/// The rule must be one of parse_plan(), or as good: names are looked up without a check.
std::string emit_rule(const Rule& rule);

/// One line for each rule. Thread-safe.
std::string emit_plan(const Plan& plan);

}  // namespace ringbolt::fault
