#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cluster/model.h"
#include "cluster_state.h"
#include "progress_line.h"

namespace ringbolt::tools {

/// How one of two programs ended, and what it printed.
struct ProgramEnd {
  std::string output;
  std::string error_output;
  std::string end_text;  ///< "exited with 0"; empty: it hung, and was killed
  int exit_code = 0;
};

/// What the caller wants to know and do while a pair runs.
struct PairWatch {
  std::string mark =
      {};  ///< lines that begin so, on standard error of the first program, go to on_line and nowhere else
  std::function<void(const std::string&)> on_line = nullptr;  ///< without the mark
  std::function<bool()> is_stopped =
      nullptr;  ///< asked often; once true, the first program gets SIGINT, and both so long to end:
  uint64_t ending_ns = 15'000'000'000;
};

/// Shows in `progress` what the first program tells of its own, and passes the wish to stop on (stop.h).
PairWatch watch_of(Progress& progress);

/// Runs `ringbolt` with `words` at both ends of a cable at once, with a stream between them: on this machine a socket
/// that `--channel FD` names, between hosts their input and output. Ends both at the deadline, and the other some
/// seconds after one has ended. Throws UsageError if one can't be started; then none is left.
/// Throws base::Error where no descriptors are left. Of each output 4 MiB are kept, and the rest is thrown away.
/// `watch` is called on this thread, some ten times a second at least. `deadline_ns`: of base::now_ns().
std::array<ProgramEnd, 2> run_pair(const LiveCluster& live, const std::array<cluster::CableEnd, 2>& ends,
                                   const std::array<std::vector<std::string>, 2>& words, uint64_t deadline_ns,
                                   const PairWatch& watch = {});

}  // namespace ringbolt::tools
