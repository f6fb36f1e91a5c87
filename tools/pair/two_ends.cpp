#include "pair/two_ends.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "cluster/model.h"
#include "cluster_state.h"
#include "failure.h"
#include "pair/device.h"
#include "program_pair.h"
#include "ssh.h"

namespace ringbolt::tools::pair {
namespace {

std::optional<std::string> line_after(std::string_view text, std::string_view begin) {
  const size_t at = text.rfind(begin);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view rest = text.substr(at + begin.size());
  return std::string(rest.substr(0, rest.find('\n')));
}

std::string mark(std::string_view command, std::string_view kind) {
  return fmt::format("ringbolt-{} {}: ", command, kind);
}

std::string one_line(std::string_view text) {
  std::string line(text);
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

/// The ends of the first cable between the two of "A,B", in that order.
std::array<cluster::CableEnd, 2> ends_of(const LiveCluster& live, const std::string& nodes) {
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
  return cable.a.node == first ? std::array{cable.a, cable.b} : std::array{cable.b, cable.a};
}

std::string name_of(const LiveCluster& live, const cluster::CableEnd& end) {
  return "node " + live.model.nodes[end.node].name;
}

}  // namespace

std::string emit_result_line(std::string_view command, std::string_view result) {
  return fmt::format("{}{}\n", mark(command, "result"), result);
}

std::string emit_failure_line(std::string_view command, std::string_view problem, bool is_echo) {
  return fmt::format("{}{}\n", mark(command, is_echo ? "echo" : "failed"), one_line(problem));
}

EndOutcome outcome_of(std::string_view command, const ProgramEnd& end) {
  for (const std::string* text : {&end.output, &end.error_output}) {
    if (auto line = line_after(*text, mark(command, "result"))) {
      return {std::move(*line), "its result makes no sense", false};
    }
    for (const bool is_echo : {false, true}) {
      if (auto line = line_after(*text, mark(command, is_echo ? "echo" : "failed"))) {
        return {std::nullopt, std::move(*line), is_echo};
      }
    }
  }
  if (end.end_text.empty()) {
    return {std::nullopt, "it hung and was killed", false};
  }
  const bool is_cut_off = end.exit_code == kSshFailed;  // ringbolt itself never ends so
  const std::string how = is_cut_off ? "was killed there, or ssh has lost the connection" : end.end_text;
  const std::string said = one_line(end.error_output.substr(0, 300));
  return {std::nullopt, fmt::format("it {}{}{}", how, said.empty() ? "" : "; it said: ", said), false};
}

NodeRun run_on_nodes(std::string_view command, const PairOptions& options, double most_s, Progress& progress) {
  const LiveCluster live = open_cluster(options.cluster);
  if (!live.is_remote()) {
    (void)verbs_path(options.verbs);  // refuses before anything is started
  }
  const auto [client, server] = ends_of(live, options.nodes);
  const std::string client_name = name_of(live, client);
  const std::string server_name = name_of(live, server);
  const auto words_of = [&](const cluster::CableEnd& end, const char* which, const std::string& other) {
    std::vector<std::string> words = options.words;
    words.insert(words.end(), {"--end", which, "--peer", other, "-d", live.model.nodes[end.node].ports[end.port].name});
    return words;
  };
  std::vector<std::string> client_words = words_of(client, "client", server_name);
  if (progress.is_shown()) {
    client_words.emplace_back("--tell-progress");
  }
  const uint64_t deadline_ns = base::now_ns() + static_cast<uint64_t>(std::min(most_s, 1e9) * 1e9);
  const std::array<ProgramEnd, 2> programs = run_pair(
      live, {client, server}, {client_words, words_of(server, "server", client_name)}, deadline_ns, watch_of(progress));
  EndOutcome mine = outcome_of(command, programs[0]);
  const EndOutcome theirs = outcome_of(command, programs[1]);
  const bool is_theirs = mine.is_echo && !theirs.result && !theirs.is_echo;  // they failed first
  std::string problem =
      fmt::format("{}: {}", is_theirs ? server_name : client_name, is_theirs ? theirs.problem : mine.problem);
  return {std::move(mine.result), std::move(problem)};
}

}  // namespace ringbolt::tools::pair
