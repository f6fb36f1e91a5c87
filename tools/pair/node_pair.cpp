#include "pair/node_pair.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "failure.h"

namespace ringbolt::tools::pair {
namespace {

std::string device_at(const LiveCluster& live, const cluster::CableEnd& end) {
  return live.model.nodes[end.node].ports[end.port].name;
}

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

}  // namespace

std::string Ends::client_name(const LiveCluster& live) const { return "node " + live.model.nodes[client.node].name; }
std::string Ends::server_name(const LiveCluster& live) const { return "node " + live.model.nodes[server.node].name; }
std::string Ends::client_device(const LiveCluster& live) const { return device_at(live, client); }
std::string Ends::server_device(const LiveCluster& live) const { return device_at(live, server); }

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

std::string emit_result_line(std::string_view command, std::string_view result) {
  return fmt::format("{}{}\n", mark(command, "result"), result);
}

std::string emit_failure_line(std::string_view command, std::string_view problem, bool is_echo) {
  return fmt::format("{}{}\n", mark(command, is_echo ? "echo" : "failed"), one_line(problem));
}

Outcome outcome_of(std::string_view command, const ProgramEnd& end) {
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
  return {std::nullopt, fmt::format("it {}; it said: {}", end.end_text, one_line(end.error_output.substr(0, 300))),
          false};
}

std::string failure_text(const std::string& client, const Outcome& of_client, const std::string& server,
                         const Outcome& of_server) {
  const bool is_second = of_client.is_echo && !of_server.result && !of_server.is_echo;
  return fmt::format("{}: {}", is_second ? server : client, is_second ? of_server.problem : of_client.problem);
}

}  // namespace ringbolt::tools::pair
