#pragma once

#include "plan/analysis.h"
#include "plan/cabling.h"

namespace ringbolt::tools::plan {

/// The plan for people: picture, cables, addresses, bounds, times.
void print_text(const Cabling& cabling, const Analysis& analysis, const PlanOptions& options);

/// What each figure means, and where it comes from.
void print_explanation(const Cabling& cabling, const Analysis& analysis);

/// The same and the proof of the check, as JSON.
void print_json(const Cabling& cabling, const Analysis& analysis, const PlanOptions& options);

/// Sizes that times are predicted for, in bytes.
inline constexpr double kPredictedBytes[] = {8, 65536, 1048576, 67108864, 1073741824};

}  // namespace ringbolt::tools::plan
