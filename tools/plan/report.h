#pragma once

#include <string>

#include "plan/analysis.h"
#include "plan/cabling.h"

namespace ringbolt::tools::plan {

/// The plan for people: picture, cables, addresses, bounds, times.
void print_text(const Cabling& cabling, const Analysis& analysis, const PlanOptions& options);

/// What each figure means, and where it comes from.
void print_explanation(const Cabling& cabling, const Analysis& analysis, const PlanOptions& options);

/// Which schedule each collective would take, and how far that is from the bound. The analysis must have rates. On 64
/// nodes it takes seconds.
void print_schedules(const Cabling& cabling, const Analysis& analysis, double alpha_us);

/// "64 KiB", "1.5 us".
std::string bytes_text(double bytes);
std::string time_text(double time_us);

/// The same and the proof of the check, as JSON.
void print_json(const Cabling& cabling, const Analysis& analysis, const PlanOptions& options);

/// Sizes that times are predicted for, in bytes.
inline constexpr double kPredictedBytes[] = {8, 65536, 1048576, 67108864, 1073741824};

}  // namespace ringbolt::tools::plan
