#pragma once

#include <string>
#include <vector>

#include "plan/analysis.h"
#include "plan/cabling.h"

namespace ringbolt::tools::plan {

/// The plan for people: picture, cables, addresses, bounds, times.
void print_text(const Cabling& cabling, const Analysis& analysis, const PlanOptions& options);

/// What each figure means, and where it comes from.
void print_explanation(const Cabling& cabling, const Analysis& analysis);

/// Which schedule each collective would take, and how far that is from the bound.
void print_schedules(const std::vector<PlannedCall>& calls);

/// "64 KiB", "1.5 us".
std::string bytes_text(double bytes);
std::string time_text(double time_us);

/// The same and the proof of the check, as JSON.
void print_json(const Cabling& cabling, const Analysis& analysis, const PlanOptions& options);

}  // namespace ringbolt::tools::plan
