#pragma once

#include <optional>
#include <string>

#include "check/integrity.h"
#include "check/matrix_plan.h"
#include "check/outcome.h"
#include "progress_line.h"
#include "ringbolt/group.h"
#include "stop.h"

namespace ringbolt::tools::check {

/// How calls are made.
struct Manner {
  CallOptions call;                                    ///< algorithm and order; the deadline is said below
  std::optional<uint64_t> deadline_ms = std::nullopt;  ///< of one call; none: 10 s and the bytes at 25 MB/s
  bool is_in_place = false;                            ///< of the 54
};

/// What has been found so far: changed only while the last words, which may be of it, are held.
struct Finding {
  Report& report;
  LastWords& last_words;
  Progress& progress;
};

/// This rank's part of the 54 collectives. A collective call. A call that fails ends it; a wrong output does not.
void run_integrity(Group& group, const std::vector<Step>& steps, const Manner& manner, const Finding& finding);

/// This rank's part of the matrix: every case by every algorithm that does it (`manner` may name one), `repeats` times
/// each.
void run_matrix(Group& group, const std::vector<MatrixCase>& cases, uint32_t repeats, const Manner& manner,
                const Finding& finding);

}  // namespace ringbolt::tools::check
