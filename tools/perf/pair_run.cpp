#include "perf/pair_run.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "base/clock.h"
#include "cluster_state.h"
#include "failure.h"
#include "node_environment.h"
#include "perf/request.h"
#include "probe/probe_failure.h"
#include "program_pair.h"

namespace ringbolt::tools::perf {
namespace {

constexpr std::string_view kResult = "ringbolt-perf result: ";
constexpr std::string_view kFailed = "ringbolt-perf failed: ";
constexpr std::string_view kEcho = "ringbolt-perf echo: ";

struct Outcome {
  std::optional<Result> result;
  std::string problem;
  bool is_echo = false;
};

std::optional<std::string_view> line_after(std::string_view text, std::string_view begin) {
  const size_t at = text.rfind(begin);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view rest = text.substr(at + begin.size());
  return rest.substr(0, rest.find('\n'));
}

Outcome outcome_of(const ProgramEnd& end) {
  for (const std::string* text : {&end.output, &end.error_output}) {
    if (const auto line = line_after(*text, kResult)) {
      return {parse_result(*line), "its result makes no sense", false};
    }
    for (const std::string_view begin : {kFailed, kEcho}) {
      if (const auto line = line_after(*text, begin)) {
        return {std::nullopt, std::string(*line), begin == kEcho};
      }
    }
  }
  if (end.end_text.empty()) {
    return {std::nullopt, "it hung and was killed", false};
  }
  std::string said = end.error_output.substr(0, 300);
  std::replace(said.begin(), said.end(), '\n', ' ');
  return {std::nullopt, fmt::format("it {}; it said: {}", end.end_text, said), false};
}

struct Ends {
  cluster::CableEnd client;
  cluster::CableEnd server;
};

Ends ends_of(const LiveCluster& live, const std::string& nodes) {
  const size_t comma = nodes.find(',');
  if (comma == std::string::npos || nodes.find(',', comma + 1) != std::string::npos) {
    throw UsageError("--nodes takes two, separated by a comma: --nodes 0,1");
  }
  const uint32_t first = find_node(live.model, nodes.substr(0, comma));
  const uint32_t second = find_node(live.model, nodes.substr(comma + 1));
  const std::vector<uint32_t> cables = cluster::cables_between(live.model, first, second);
  if (cables.empty()) {
    throw UsageError(fmt::format("there is no cable between {} and {}; `ringbolt status` shows which there are",
                                 live.model.nodes[first].name, live.model.nodes[second].name));
  }
  const cluster::Cable& cable = live.model.cables[cables.front()];
  return cable.a.node == first ? Ends{cable.a, cable.b} : Ends{cable.b, cable.a};
}

/// Each end bounds its own waits; this is for when both stand still.
uint64_t deadline_of(const PerfOptions& options, const Parameters& parameters) {
  const double figures = 2.0 * static_cast<double>(parameters.sizes.size());
  constexpr double kSecondsAnOperation = 1e-3;
  const double one = options.timeout_s * 2 + parameters.duration_s * 2 +
                     static_cast<double>(parameters.iterations) * kSecondsAnOperation;
  return base::now_ns() + static_cast<uint64_t>(std::min(figures * one, 1e8) * 1e9);
}

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

}  // namespace

std::string emit_outcome(const Result& result) { return std::string(kResult) + result_json(result, true); }

std::string emit_failure(const std::string& problem, bool is_echo) {
  return fmt::format("{}{}\n", is_echo ? kEcho : kFailed, one_line(problem));
}

Result run_on_nodes(const PerfOptions& options) {
  const Request request = request_of(options);
  const LiveCluster live = open_cluster(options.cluster);
  if (!live.is_remote()) {
    library_folder();  // refuses before anything is started
  }
  const Ends ends = ends_of(live, options.nodes);
  const auto device = [&](const cluster::CableEnd& end) { return live.model.nodes[end.node].ports[end.port].name; };
  const std::string client = "node " + live.model.nodes[ends.client.node].name;
  const std::string server = "node " + live.model.nodes[ends.server.node].name;
  const std::array<ProgramEnd, 2> programs = run_pair(live, {ends.client, ends.server},
                                                      {words_of(options, device(ends.client), "client", server),
                                                       words_of(options, device(ends.server), "server", client)},
                                                      deadline_of(options, request.parameters));
  Outcome first = outcome_of(programs[0]);
  Outcome second = outcome_of(programs[1]);
  if (first.result) {
    return std::move(*first.result);
  }
  const bool is_second = first.is_echo && !second.result && !second.is_echo;
  throw ProbeFailure(fmt::format("{}: {}", is_second ? server : client, is_second ? second.problem : first.problem));
}

}  // namespace ringbolt::tools::perf
