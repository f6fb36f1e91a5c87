#pragma once

#include <string>
#include <vector>

#include "plan/analysis.h"
#include "plan/cabling.h"

namespace ringbolt::tools::plan {

/// The plan for people: picture, cables, addresses, bounds, times.
/// To stdout, as all of these.
void print_text(const Cabling& cabling, const Analysis& analysis, const PlanOptions& options);

/// What each figure means, and where it comes from.
/// Nothing of a cabling that does not join all nodes; of one of many nodes its shape alone.
void print_explanation(const Cabling& cabling, const Analysis& analysis);

/// Which schedule each collective would take, and how far that is from the bound.
void print_schedules(const std::vector<PlannedCall>& calls);

/// "64 KiB", "1.5 us".
/// Whole units of 1024, rounded; times from 1000 us on in ms. Thread-safe.
std::string bytes_text(double bytes);
std::string time_text(double time_us);

/// The same and the proof of the check, as JSON.
void print_json(const Cabling& cabling, const Analysis& analysis, const PlanOptions& options);

}  // namespace ringbolt::tools::plan
