#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cluster/model.h"
#include "cluster_state.h"
#include "program_pair.h"

namespace ringbolt::tools::pair {

/// Where the two ends of a run are on a cluster.
struct Ends {
  cluster::CableEnd client;
  cluster::CableEnd server;

  std::string client_name(const LiveCluster& live) const;  ///< "node n0"
  std::string server_name(const LiveCluster& live) const;
  std::string client_device(const LiveCluster& live) const;  ///< "rdma_en2"
  std::string server_device(const LiveCluster& live) const;
};

/// `nodes`: "A,B", the value of --nodes: the ends of the first cable between them. Throws UsageError.
Ends ends_of(const LiveCluster& live, const std::string& nodes);

/// What a process of --nodes prints in one line for the command that started it: its result, which has no newline, or
/// why there is none. `command`: "perf".
std::string emit_result_line(std::string_view command, std::string_view result);
std::string emit_failure_line(std::string_view command, std::string_view problem, bool is_echo);

/// How such a process ended.
struct Outcome {
  std::optional<std::string> result;
  std::string problem;   ///< if there is no result
  bool is_echo = false;  ///< the problem is only that the other end has one
};
/// Any output is safe to pass. Thread-safe.
Outcome outcome_of(std::string_view command, const ProgramEnd& end);

/// The report of a run without a result: the end that failed first, and its problem.
std::string failure_text(const std::string& client, const Outcome& of_client, const std::string& server,
                         const Outcome& of_server);

}  // namespace ringbolt::tools::pair
