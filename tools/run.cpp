#include <algorithm>

#include <fmt/format.h>

#include "cluster_state.h"
#include "commands.h"
#include "failure.h"
#include "node_environment.h"
#include "ssh.h"
#include "supervisor.h"

namespace ringbolt::tools {
namespace {

std::vector<uint32_t> chosen_nodes(const LiveCluster& live, const RunOptions& options) {
  std::vector<uint32_t> nodes;
  if (options.nodes.empty()) {
    for (uint32_t node = 0; node < live.model.nodes.size(); ++node) {
      nodes.push_back(node);
    }
  }
  for (const std::string& text : options.nodes) {
    const uint32_t node = find_node(live.model, text);
    if (std::find(nodes.begin(), nodes.end(), node) != nodes.end()) {
      throw UsageError(fmt::format("node {} is given twice", text));
    }
    nodes.push_back(node);
  }
  return nodes;
}

Launch launch_of(const LiveCluster& live, uint32_t node, const std::vector<std::string>& command) {
  if (live.is_remote()) {
    std::vector<std::string> words{"run", "--node", std::to_string(node), "--no-tag", "--remote", "--"};
    words.insert(words.end(), command.begin(), command.end());
    Launch launch = node_launch(live.model, node, std::move(words));
    launch.is_remote = true;
    return launch;
  }
  const NodeEnvironment environment = node_environment(live, node);
  Launch launch;
  launch.command = command;
  launch.environment = merged_environment(environment);
  launch.netns = environment.netns;
  return launch;
}

}  // namespace

int run(const RunOptions& options) {
  const LiveCluster live = open_cluster(options.cluster);
  const std::vector<uint32_t> nodes = chosen_nodes(live, options);
  const bool is_tagged = !options.is_untagged && (options.is_tagged || nodes.size() > 1);
  size_t width = 0;
  for (const uint32_t node : nodes) {
    width = std::max(width, live.model.nodes[node].name.size());
  }
  std::vector<Member> members;
  for (const uint32_t node : nodes) {
    Member member;
    member.label = live.model.nodes[node].name;
    member.prefix = is_tagged ? fmt::format("{:<{}} | ", member.label, width) : "";
    member.launch = launch_of(live, node, options.command);
    members.push_back(std::move(member));
  }
  return supervise(std::move(members), {"ringbolt run", options.timeout_s, options.keeps_going, options.is_remote});
}

}  // namespace ringbolt::tools
