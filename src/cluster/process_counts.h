#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"
#include "cluster/counter_layout.h"

namespace ringbolt::cluster {

/// What one process counts in a file of counters.
struct ProcessCount {
  pid_t pid = 0;  ///< as the process saw itself; one that died may have left it
  RingboltCounterSum sum{};
};

/// As read_counters() of counter_page.h, apart for each process that a block names and that counts there for its own
/// port: blocks go on from owner to owner, so that only how a sum changes is the process' own. Thread-safe. Errors as
/// there: ENOENT, EINVAL, or what open and read say.
base::Result<std::vector<ProcessCount>> read_counters_by_process(const std::string& path);

}  // namespace ringbolt::cluster
