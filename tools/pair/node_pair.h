#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster_state.h"
#include "pair/request.h"
#include "program_pair.h"

namespace ringbolt::tools::pair {

/// What a process of --nodes prints in one line for the command that started it: its result, which has no newline, or
/// why there is none. `command`: "perf".
std::string emit_result_line(std::string_view command, std::string_view result);
std::string emit_failure_line(std::string_view command, std::string_view problem, bool is_echo);

/// What came of a run on two nodes.
struct NodeRun {
  std::optional<std::string> result;  ///< as the client printed it
  std::string problem;                ///< what to say if there is no result, or it makes no sense: node and reason
};

/// Runs both ends of `ringbolt COMMAND` on the nodes "A,B" of `nodes`, over the first cable between them; A's is the
/// client. `words_of` makes the command line of an end. Throws UsageError. Not thread-safe.
NodeRun run_on_nodes(std::string_view command, const LiveCluster& live, const std::string& nodes,
                     const std::function<std::vector<std::string>(const EndWords&)>& words_of, uint64_t deadline_ns,
                     const PairWatch& watch = {});

}  // namespace ringbolt::tools::pair
